/* Plain trees of tensors, read and put together in C.
 *
 * `trees.py` and `batches.py` say what is plain, and do the same in Python where this file was not compiled.
 * Containers are copied as they are met, and only the copies are walked: whatever asks a tensor something may
 * run Python code, and with it other threads that change the tree.
 *
 * A function that gives a PyObject * gives a new reference, or NULL: with an error set, or without one to say
 * that something is not plain.
 */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "_pointers.h"

enum { INTERFACE = 1 }; /* as in `compiled.py`: a module that was compiled before a change here is not used */
enum { DEEPEST = 100 }; /* containers in containers; deeper ones are left to Python */

/* Set by `prepare`: torch's classes and their descriptors. */
static PyObject *tensor_type, *parameter_type, *ordered_type, *same_types, *key_types;
static PyObject *requires_grad, *grad, *nbytes, *untyped_storage, *is_contiguous, *storage_nbytes;
static Py_ssize_t large_nbytes;

static PyObject *get(PyObject *descriptor, PyObject *x)
{
    descrgetfunc getter = Py_TYPE(descriptor)->tp_descr_get;
    if (getter)
        return getter(descriptor, x, (PyObject *)Py_TYPE(x));
    PyErr_Format(PyExc_TypeError, "%R is no descriptor", descriptor);
    return NULL;
}

static PyObject *call(PyObject *method, PyObject *x)
{
    PyObject *arguments[] = {x};
    return PyObject_Vectorcall(method, arguments, 1, NULL);
}

static int is_tensor(PyObject *x)
{
    return Py_TYPE(x) == (PyTypeObject *)tensor_type || Py_TYPE(x) == (PyTypeObject *)parameter_type;
}

/* Whether an attribute, or a method without arguments, gives what is expected (1 or 0), or -1. */
static int gives(PyObject *descriptor, PyObject *x, PyObject *expected)
{
    PyObject *found = Py_IS_TYPE(descriptor, &PyMethodDescr_Type) ? call(descriptor, x) : get(descriptor, x);
    Py_XDECREF(found);
    return found ? found == expected : -1;
}

static int has_attributes(PyObject *x)
{
    PyObject *found = PyObject_GenericGetDict(x, NULL);
    int any = found ? PyDict_GET_SIZE(found) != 0 : -1;
    Py_XDECREF(found);
    return any;
}

static Py_ssize_t number(PyObject *found)
{
    Py_ssize_t value = found ? PyLong_AsSsize_t(found) : -1;
    Py_XDECREF(found);
    return value;
}

/* The storage of a tensor that is small, dense and fills it; of one that is no Parameter only where it has
 * neither gradient nor attributes. */
static PyObject *own_storage(PyObject *x)
{
    if (Py_TYPE(x) != (PyTypeObject *)parameter_type) {
        if (gives(requires_grad, x, Py_False) != 1 || gives(grad, x, Py_None) != 1 || has_attributes(x))
            return NULL;
    }
    PyObject *storage = call(untyped_storage, x);
    if (!storage)
        return NULL;
    Py_ssize_t held = number(call(storage_nbytes, storage));
    int is_small = held >= 0 && held < large_nbytes;
    if (is_small && number(get(nbytes, x)) == held && gives(is_contiguous, x, Py_True) == 1)
        return storage;
    Py_DECREF(storage);
    return NULL;
}

/* Sparse and opaque layouts raise when asked for their storage: they are not plain. */
static int is_refusal(void)
{
    if (!PyErr_Occurred())
        return 1;
    if (!PyErr_ExceptionMatches(PyExc_RuntimeError))
        return 0;
    PyErr_Clear();
    return 1;
}

typedef struct {
    Pointers met;         /* containers and storages */
    PyObject *tensors;    /* in the order in which `fill` comes by */
    PyObject *storages;   /* of them, kept so that no address is met twice */
    PyObject *containers; /* one of the source, its copy, the next one, ... */
    int depth;
} Walk;

static PyObject *opened(Walk *walk, PyObject *x);

/* 1, 0, or -1: a metaclass may refuse its hash. */
static int is_of(PyObject *types, PyObject *x)
{
    PyTypeObject *kind = Py_TYPE(x);
    if (kind == &PyUnicode_Type || kind == &PyLong_Type || kind == &PyFloat_Type)
        return 1;
    return PySet_Contains(types, (PyObject *)kind);
}

static int note_tensor(Walk *walk, PyObject *x)
{
    PyObject *storage = own_storage(x);
    if (!storage)
        return -1;
    int is_new = add(&walk->met, storage) == 1;
    int kept = is_new && PyList_Append(walk->storages, storage) == 0 && PyList_Append(walk->tensors, x) == 0;
    Py_DECREF(storage);
    return kept ? 0 : -1;
}

/* What stands for an item in a copied container; a new reference. */
static PyObject *item_of(Walk *walk, PyObject *x)
{
    if (is_tensor(x))
        return note_tensor(walk, x) < 0 ? NULL : Py_NewRef(x);
    int same = is_of(same_types, x);
    if (same == 0)
        return opened(walk, x);
    return same < 0 ? NULL : Py_NewRef(x);
}

static PyObject *opened_dictionary(Walk *walk, PyObject *x)
{
    PyObject *copy = PyDict_Copy(x), *key, *value;
    Py_ssize_t position = 0;
    while (copy && PyDict_Next(copy, &position, &key, &value)) {
        Py_INCREF(value);
        PyObject *item = is_of(key_types, key) == 1 ? item_of(walk, value) : NULL;
        int failed = !item || (item != value && PyDict_SetItem(copy, key, item) < 0);
        Py_XDECREF(item);
        Py_DECREF(value);
        if (failed)
            Py_CLEAR(copy);
    }
    return copy;
}

static PyObject *opened_ordered(Walk *walk, PyObject *x)
{
    PyObject *keys = PySequence_List(x), *copy = keys ? PyODict_New() : NULL;
    for (Py_ssize_t i = 0; copy && i < PyList_GET_SIZE(keys); i++) {
        PyObject *key = PyList_GET_ITEM(keys, i);
        PyObject *value = is_of(key_types, key) == 1 ? PyDict_GetItemWithError(x, key) : NULL;
        Py_XINCREF(value);
        PyObject *item = value ? item_of(walk, value) : NULL;
        int failed = !item || PyODict_SetItem(copy, key, item) < 0;
        Py_XDECREF(item);
        Py_XDECREF(value);
        if (failed)
            Py_CLEAR(copy);
    }
    Py_XDECREF(keys);
    return copy;
}

static PyObject *opened_list(Walk *walk, PyObject *x)
{
    PyObject *copy = PyList_GetSlice(x, 0, PyList_GET_SIZE(x));
    for (Py_ssize_t i = 0; copy && i < PyList_GET_SIZE(copy); i++) {
        PyObject *item = item_of(walk, PyList_GET_ITEM(copy, i));
        if (!item || PyList_SetItem(copy, i, item) < 0)
            Py_CLEAR(copy);
    }
    return copy;
}

static PyObject *opened_tuple(Walk *walk, PyObject *x)
{
    Py_ssize_t size = PyTuple_GET_SIZE(x);
    PyObject *copy = PyTuple_New(size);
    int changes = 0;
    if (copy)
        PyObject_GC_UnTrack(copy); /* whoever looks over all objects would take its empty places for items */
    for (Py_ssize_t i = 0; copy && i < size; i++) {
        PyObject *value = PyTuple_GET_ITEM(x, i), *item = item_of(walk, value);
        changes |= item != value || is_tensor(value);
        if (item)
            PyTuple_SET_ITEM(copy, i, item);
        else
            Py_CLEAR(copy);
    }
    if (copy && changes)
        PyObject_GC_Track(copy);
    else if (copy)
        Py_SETREF(copy, Py_NewRef(x));
    return copy;
}

static int is_all_same(PyObject *x)
{
    int same = 1;
    for (Py_ssize_t i = 0; same == 1 && i < PyTuple_GET_SIZE(x); i++)
        same = is_of(same_types, PyTuple_GET_ITEM(x, i));
    return same;
}

static PyObject *opened(Walk *walk, PyObject *x)
{
    PyTypeObject *kind = Py_TYPE(x);
    int same = kind == &PyTuple_Type ? is_all_same(x) : 0;
    if (same)
        return same < 0 ? NULL : Py_NewRef(x);
    if (walk->depth >= DEEPEST || add(&walk->met, x) != 1)
        return NULL;
    PyObject *copy = NULL;
    walk->depth++;
    if (kind == &PyDict_Type)
        copy = opened_dictionary(walk, x);
    else if (kind == &PyList_Type)
        copy = opened_list(walk, x);
    else if (kind == &PyTuple_Type)
        copy = opened_tuple(walk, x);
    else if (kind == (PyTypeObject *)ordered_type)
        copy = opened_ordered(walk, x);
    walk->depth--;
    if (copy && (PyList_Append(walk->containers, x) < 0 || PyList_Append(walk->containers, copy) < 0))
        Py_CLEAR(copy);
    return copy;
}

static PyObject *open_tree(PyObject *self, PyObject *root)
{
    Walk walk = {{NULL, 0, 0}, PyList_New(0), PyList_New(0), PyList_New(0), 0};
    PyObject *copy = NULL, *found = NULL;
    if (walk.tensors && walk.storages && walk.containers)
        copy = opened(&walk, root);
    if (copy)
        found = PyTuple_Pack(3, copy, walk.tensors, walk.containers);
    Py_XDECREF(copy);
    Py_XDECREF(walk.tensors);
    Py_XDECREF(walk.storages);
    Py_XDECREF(walk.containers);
    PyMem_Free(walk.met.slots);
    if (!found && is_refusal())
        Py_RETURN_NONE;
    return found;
}

typedef struct {
    PyObject *copies;
    Py_ssize_t next;
} Filling;

static int fill(Filling *filling, PyObject *x);

/* What replaces an item, borrowed; the item itself where nothing does. NULL is an error. */
static PyObject *replaced(Filling *filling, PyObject *x)
{
    if (!is_tensor(x))
        return fill(filling, x) < 0 ? NULL : x;
    if (filling->next < PyList_GET_SIZE(filling->copies))
        return PyList_GET_ITEM(filling->copies, filling->next++);
    PyErr_SetString(PyExc_ValueError, "fewer copies than tensors");
    return NULL;
}

static int fill(Filling *filling, PyObject *x)
{
    PyObject *key, *value, *item;
    Py_ssize_t i = 0;
    if (PyDict_Check(x)) {
        while (PyDict_Next(x, &i, &key, &value)) {
            item = replaced(filling, value);
            if (!item || (item != value && PyDict_SetItem(x, key, item) < 0))
                return -1;
        }
    }
    else if (PyList_CheckExact(x)) {
        for (; i < PyList_GET_SIZE(x); i++) {
            value = PyList_GET_ITEM(x, i);
            item = replaced(filling, value);
            if (!item || (item != value && PyList_SetItem(x, i, Py_NewRef(item)) < 0))
                return -1;
        }
    }
    else if (PyTuple_CheckExact(x)) {
        for (; i < PyTuple_GET_SIZE(x); i++) {
            value = PyTuple_GET_ITEM(x, i);
            item = replaced(filling, value);
            if (!item)
                return -1;
            if (item != value) { /* nobody has seen this tuple yet */
                PyTuple_SET_ITEM(x, i, Py_NewRef(item));
                Py_DECREF(value);
            }
        }
    }
    return 0;
}

static PyObject *fill_tree(PyObject *self, PyObject *arguments)
{
    PyObject *tree;
    Filling filling = {NULL, 0};
    if (!PyArg_ParseTuple(arguments, "OO!", &tree, &PyList_Type, &filling.copies) || fill(&filling, tree) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *own_storages(PyObject *self, PyObject *tensors)
{
    PyObject *storages = PyList_Check(tensors) ? PyList_New(0) : NULL;
    for (Py_ssize_t i = 0; storages && i < PyList_GET_SIZE(tensors); i++) {
        PyObject *x = Py_NewRef(PyList_GET_ITEM(tensors, i)), *storage = own_storage(x);
        Py_DECREF(x);
        if (!storage || PyList_Append(storages, storage) < 0)
            Py_CLEAR(storages);
        Py_XDECREF(storage);
    }
    if (!storages && is_refusal())
        Py_RETURN_NONE;
    return storages;
}

/* Conditions are descriptors, each followed by what it is to give. */
static PyObject *all_give(PyObject *self, PyObject *arguments)
{
    PyObject *objects, *conditions;
    if (!PyArg_ParseTuple(arguments, "O!O!", &PyList_Type, &objects, &PyTuple_Type, &conditions))
        return NULL;
    int same = 1;
    for (Py_ssize_t i = 0; same == 1 && i < PyList_GET_SIZE(objects); i++) {
        PyObject *x = Py_NewRef(PyList_GET_ITEM(objects, i));
        for (Py_ssize_t j = 0; same == 1 && j + 1 < PyTuple_GET_SIZE(conditions); j += 2)
            same = gives(PyTuple_GET_ITEM(conditions, j), x, PyTuple_GET_ITEM(conditions, j + 1));
        Py_DECREF(x);
    }
    return same < 0 && !is_refusal() ? NULL : Py_NewRef(same == 1 ? Py_True : Py_False);
}

static PyObject *prepare(PyObject *self, PyObject *arguments)
{
    if (!PyArg_ParseTuple(arguments, "OOOOOOOOOOOn", &tensor_type, &parameter_type, &ordered_type,
                          &same_types, &key_types, &requires_grad, &grad, &nbytes, &untyped_storage,
                          &is_contiguous, &storage_nbytes, &large_nbytes))
        return NULL;
    Py_INCREF(arguments); /* for good: it keeps all of them */
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"prepare", prepare, METH_VARARGS, NULL},
    {"open", open_tree, METH_O, NULL},
    {"fill", fill_tree, METH_VARARGS, NULL},
    {"own_storages", own_storages, METH_O, NULL},
    {"all_give", all_give, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT, .m_name = "_plain", .m_size = -1, .m_methods = functions};

PyMODINIT_FUNC PyInit__plain(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (module && PyModule_AddIntConstant(module, "INTERFACE", INTERFACE) < 0)
        Py_CLEAR(module);
    return module;
}
