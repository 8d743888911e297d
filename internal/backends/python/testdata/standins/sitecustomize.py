"""Puts stand-ins in the place of modules that are not installed, so that the definition of arguments can be imported.

The names of the modules are in STANDINS, with colons between them. Every attribute of a stand-in is a class that can be inherited
from, called, used as a decorator and compared.
"""

import importlib.abc
import importlib.machinery
import os
import sys
import types
import typing


class Anything(type(typing.Protocol)):  # so that a class can inherit from a protocol, too

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        made = make(name)
        setattr(cls, name, made)
        return made

    def __call__(cls, *args, **kwargs):
        if not cls.__dict__.get("standin"):
            return super().__call__(*args, **kwargs)
        if len(args) == 1 and not kwargs and (isinstance(args[0], types.FunctionType) or isinstance(args[0], type)):
            return args[0]  # a decorator
        return make(cls.__name__)

    def __iter__(cls):
        return iter(())

    def __bool__(cls):
        return False

    def __len__(cls):
        return 0

    def __getitem__(cls, _):
        return make(cls.__name__)

    def __enter__(cls):
        return cls

    def __exit__(cls, *_):
        return False

    def __lt__(cls, _):
        return False

    __gt__ = __le__ = __ge__ = __lt__


class Base:
    _is_protocol = False

    def __init__(self, *_, **__):
        pass

    def __init_subclass__(cls, **_):
        pass


def make(name):
    return Anything(name, (Base,), {"standin": True, "__doc__": None})


class StandIn(types.ModuleType):
    __path__ = []
    __version__ = "2.9.0"

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        made = make(name)
        setattr(self, name, made)
        return made


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):

    names = tuple(name + "." for name in os.environ.get("STANDINS", "").split(":") if name)

    def find_spec(self, name, path=None, target=None):
        if (name + ".").startswith(self.names):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return StandIn(spec.name)

    def exec_module(self, module):
        pass


sys.meta_path.insert(0, Finder())
