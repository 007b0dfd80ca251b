"""Attributes and hooks of a network for its private copy, bound to the copy's own parts."""

import copy
import weakref
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from types import (
    BuiltinFunctionType,
    CellType,
    FunctionType,
    MethodType,
    MethodWrapperType,
    ModuleType,
)
from typing import Any

from torch import Tensor, nn

from interp.errors import ModelError
from interp.models.belongings import Belongings
from interp.models.leads import (
    PLAIN,
    PROXIES,
    Globals,
    behind,
    contents_of,
    global_names,
    stores_globals,
    target_of,
)
from interp.models.twins import Same

CONTAINERS = {OrderedDict, dict, set, list, tuple}


class CannotFollow(Exception):
    """Why an object of the network cannot be one of its copy."""


class Uncopied:
    """Stands in a copy for an attribute that leads back to the original: any use is refused."""

    def __init__(self, message: str) -> None:
        self._message = message

    def _refuse(self, *args: Any, **kwargs: Any) -> Any:
        raise ModelError(self._message)

    __call__ = __getitem__ = __iter__ = __next__ = __len__ = __bool__ = __enter__ = __contains__ = (
        _refuse
    )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # Python asks for these itself
            raise AttributeError(name)
        self._refuse()


class Memo(dict[int, Any]):
    """What has a copy already, as `deepcopy` wants it, and how to copy what has none.

    Parameters
    ----------
    root : nn.Module
        The network that is copied.
    tensors : Same
        What the copy has in place of a tensor.
    copy_module : callable
        Called with a module and this memo.
    """

    def __init__(
        self, root: nn.Module, tensors: Same, copy_module: Callable[[nn.Module, "Memo"], nn.Module]
    ) -> None:
        super().__init__()
        self.tensors, self._copy_module = tensors, copy_module
        self.net = Belongings(root)

    def leads_back(self, value: Any) -> bool:
        """Whether a copied value still leads to a module of the original."""
        return any(
            isinstance(one, nn.Module) and self.get(id(one), one) is not one
            for one in behind(value)
        )

    # --- copies ---

    def of(self, value: Any) -> Any:
        """An attribute for the copy: its own containers and objects, its modules and tensors.

        Raises
        ------
        CannotFollow
            The value leads back to the original network, and cannot be made to lead to the copy.
        """
        kind = type(value)
        if kind in PLAIN or kind is Uncopied:
            return value
        if kind in PROXIES:
            return self._reference(value)
        if isinstance(value, Tensor):
            return self.tensors(value)
        if isinstance(value, nn.Module):
            return self._copy_module(value, self)
        if id(value) in self:
            return self[id(value)]
        if kind in CONTAINERS:
            return self._container(value)
        bound = _BOUND.get(kind)
        if bound is None and isinstance(value, weakref.ref):
            bound = Memo._reference
        return self._object(value) if bound is None else bound(self, value)

    def where_it_leads(self, value: Any) -> Any:
        """A value for the copy that stays the very same where it leads to nothing of the network.

        So does a hook that counts in a list of the caller's.
        """
        return self.of(value) if self.net.leads(value) else value

    def _container(self, value: Any) -> Any:
        kind = type(value)
        if kind is tuple:
            plain = PLAIN.issuperset(map(type, value))
            return value if plain else tuple(self.of(item) for item in value)
        new = self[id(value)] = kind()
        if not value:
            return new
        if isinstance(value, dict):
            new.update((self.of(key), self.of(item)) for key, item in value.items())
        elif isinstance(value, set):
            new.update(self.of(item) for item in value)
        else:
            new.extend(self.of(item) for item in value)
        return new

    def _function(self, value: FunctionType) -> FunctionType:
        """The same code over the copy's parts: cells, defaults and globals that lead to them."""
        if _holds_nothing(value) or not self.net.leads(value):
            return value
        cells = value.__closure__ or ()
        fresh = {id(c): c for c in cells if id(c) not in self and self.net.leads(contents_of(c))}
        for key in fresh:
            self[key] = CellType()
        closure = tuple(self.get(id(cell), cell) for cell in cells)
        names = self._globals_for(value)
        new = self[id(value)] = FunctionType(
            value.__code__, names, value.__name__, None, closure or None
        )
        for name in ("__qualname__", "__module__", "__doc__", "__annotations__"):
            setattr(new, name, getattr(value, name))
        if isinstance(names, Globals):
            self._fill(names, value)
        for key, cell in fresh.items():
            self[key].cell_contents = self.of(contents_of(cell))
        if value.__defaults__:
            new.__defaults__ = tuple(map(self.where_it_leads, value.__defaults__))
        if value.__kwdefaults__:
            new.__kwdefaults__ = self._values(value.__kwdefaults__)
        vars(new).update(self._values(vars(value)))
        return new

    def _values(self, named: dict[str, Any]) -> dict[str, Any]:
        return {name: self.where_it_leads(value) for name, value in named.items()}

    def _globals_for(self, function: FunctionType) -> dict[str, Any]:
        if not self.net.names_a_part(function):
            return function.__globals__
        if stores_globals(function):
            raise CannotFollow(
                "names a part of the network as a global, and assigns to a global itself"
            )
        return Globals(function.__globals__)

    def _fill(self, names: Globals, function: FunctionType) -> None:
        for name in global_names(function):
            value = function.__globals__[name]
            is_function = type(value) is FunctionType
            if self.net.names_a_part(value) if is_function else self.net.is_part(value):
                names[name] = self.of(value)

    def _method(self, value: MethodType) -> Any:
        if isinstance(value.__self__, type | ModuleType) or not self.net.leads(value):
            return value
        function = self.of(value.__func__)
        return MethodType(function, self.where_it_leads(value.__self__))

    def _builtin(self, value: Any) -> Any:
        owner = value.__self__
        if owner is None or isinstance(owner, type | ModuleType) or not self.net.leads(owner):
            return value
        return getattr(self.of(owner), value.__name__)

    def _partial(self, value: partial[Any]) -> partial[Any]:
        if not self.net.leads(value):
            return value
        args = map(self.where_it_leads, value.args)
        return partial(self.of(value.func), *args, **self._values(value.keywords))

    def _reference(self, value: Any) -> Any:
        if isinstance(value, weakref.WeakMethod):
            method = value()
            return value if method is None else weakref.WeakMethod(self.of(method))
        target = target_of(value)
        if target is None or not self.net.has(target):
            return value
        if isinstance(value, weakref.ref):
            return weakref.ref(self.of(target))
        return weakref.proxy(self.of(target))

    def _object(self, value: Any) -> Any:
        """A deep copy, or the object itself where its class forbids one and it leads nowhere."""
        for one in list(behind(value)):
            if one is value or id(one) in self:
                continue
            if isinstance(one, Tensor):
                self[id(one)] = self.tensors(one)
            elif isinstance(one, nn.Module):
                self._copy_module(one, self)
            elif type(one) is FunctionType:
                self[id(one)] = self._function(one)
            elif isinstance(one, weakref.ref) and isinstance(target_of(one), nn.Module):
                self[id(one)] = self._reference(one)
        if id(value) in self:
            return self[id(value)]
        try:
            new = copy.deepcopy(value, self)
        except Exception:  # whatever the caller's class raises: it has to stay what it is
            new = value
        if self.leads_back(new):
            raise CannotFollow(
                f"is a {type(value).__name__} that leads to a part of the original network and "
                "cannot be copied along with it"
            )
        return new


_BOUND: dict[type, Callable[[Memo, Any], Any]] = {
    FunctionType: Memo._function,
    MethodType: Memo._method,
    BuiltinFunctionType: Memo._builtin,
    MethodWrapperType: Memo._builtin,
    partial: Memo._partial,
}


def _holds_nothing(function: FunctionType) -> bool:
    held = function.__defaults__, function.__kwdefaults__, function.__closure__, vars(function)
    return not any(held) and not global_names(function)
