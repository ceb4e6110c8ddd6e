"""A decorator out of a context manager, for functions, generators and coroutines, while their code runs.

A suspended generator or coroutine is outside the context: what runs meanwhile is not in it.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractContextManager
from typing import Any

Context = Callable[[], AbstractContextManager[Any]]


def drive(function: Any, context: Context) -> Any:
    """The function with each stretch of its running inside a context of its own."""
    make = _plain
    if inspect.isasyncgenfunction(function):
        make = _async_generator
    elif inspect.iscoroutinefunction(function):
        make = _coroutine
    elif inspect.isgeneratorfunction(function):
        make = _generator
    return functools.update_wrapper(make(function, context), function)


def _plain(function: Any, context: Context) -> Any:
    def inside(*args: Any, **kwargs: Any) -> Any:
        with context():
            return function(*args, **kwargs)

    return inside


def _generator(function: Any, context: Context) -> Any:
    def inside(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        return (yield from _steps(function(*args, **kwargs), context))

    return inside


def _coroutine(function: Any, context: Context) -> Any:
    async def inside(*args: Any, **kwargs: Any) -> Any:
        return await _awaited(function(*args, **kwargs), context)

    return inside


def _async_generator(function: Any, context: Context) -> Any:
    async def inside(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        generator = function(*args, **kwargs)
        step = generator.asend(None)
        while True:
            try:
                item = await _awaited(step, context)
            except StopAsyncIteration:
                return
            try:
                step = generator.asend((yield item))
            except GeneratorExit:
                await _awaited(generator.aclose(), context)
                raise
            except BaseException as error:
                step = generator.athrow(error)

    return inside


def _steps(running: Any, context: Context) -> Generator[Any, Any, Any]:
    """Drive a generator or coroutine, each step inside the context."""
    resume, value = running.send, None
    while True:
        try:
            with context():
                yielded = resume(value)
        except StopIteration as end:
            return end.value
        try:
            resume, value = running.send, (yield yielded)
        except GeneratorExit:
            with context():
                running.close()
            raise
        except BaseException as error:
            resume, value = running.throw, error


_awaited = types.coroutine(_steps)
