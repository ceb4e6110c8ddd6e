/* A set of pointers, which do not move. Zeroed, it is empty; `PyMem_Free(set.slots)` ends it. */

#include <Python.h>
#include <stdint.h>

typedef struct {
    void **slots;
    size_t size; /* a power of two */
    size_t count;
} Pointers;

static size_t slot_of(const Pointers *set, const void *pointer)
{
    size_t slot = ((uintptr_t)pointer >> 4) * 0x9E3779B97F4A7C15u >> 20 & (set->size - 1);
    while (set->slots[slot] && set->slots[slot] != pointer)
        slot = (slot + 1) & (set->size - 1);
    return slot;
}

static int grow(Pointers *set)
{
    Pointers bigger = {NULL, set->size ? set->size * 4 : 64, set->count};
    bigger.slots = PyMem_Calloc(bigger.size, sizeof(void *));
    if (!bigger.slots) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < set->size; i++)
        if (set->slots[i])
            bigger.slots[slot_of(&bigger, set->slots[i])] = set->slots[i];
    PyMem_Free(set->slots);
    *set = bigger;
    return 0;
}

/* 1: it is new; 0: it was there; -1: an error is set. */
static int add(Pointers *set, void *pointer)
{
    if (set->count * 2 >= set->size && grow(set) < 0)
        return -1;
    size_t slot = slot_of(set, pointer);
    if (set->slots[slot])
        return 0;
    set->slots[slot] = pointer;
    set->count++;
    return 1;
}
