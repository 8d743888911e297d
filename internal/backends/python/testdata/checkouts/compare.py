"""Compares what primus gives each framework with what AMD's own code gives it.

The argument is a JSON file: a list of experiments with the files that primus wrote for them. The paths of the checkouts are in
PRIMUS_CHECKOUT, MEGATRON_CHECKOUT and TORCHTITAN_CHECKOUT, that of the shim in SHIM. Each line of the output is a JSON object with
an experiment, its framework and the differences. Modules that are not installed are stand-ins.
"""

import contextlib
import dataclasses
import enum
import importlib
import importlib.machinery
import importlib.util
import io
import json
import os
import sys
import tomllib
import types
from types import SimpleNamespace

import sitecustomize  # the stand-ins


def packaging():
    """Takes the package packaging from pip where it is not installed."""
    if importlib.util.find_spec("packaging") is None:
        for name in ("", ".version", ".specifiers"):
            sys.modules["packaging" + name] = importlib.import_module("pip._vendor.packaging" + name)


def bare(name, path):
    """Makes a package importable without what its __init__.py imports."""
    module = types.ModuleType(name)
    module.__path__ = [path]
    module.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)
    sys.modules[name] = module


def plain(value):
    if isinstance(value, SimpleNamespace):
        return plain(vars(value))
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, enum.Enum):
        return "enum:" + value.name
    return value if isinstance(value, (str, int, float, bool, type(None))) else repr(value)


def differences(want, got, path=""):
    if isinstance(want, dict) and isinstance(got, dict):
        found = []
        for key in sorted(set(want) | set(got)):
            if key not in got:
                found.append(f"{path}{key}: missing, want {want[key]!r}")
            elif key not in want:
                found.append(f"{path}{key}: unwanted {got[key]!r}")
            else:
                found += differences(want[key], got[key], f"{path}{key}.")
        return found
    if type(want) is type(got) and (want == got or want != want and got != got):
        return []
    return [f"{path[:-1]}: want {want!r}, got {got!r}"]


def yaml_file(framework, params, case):
    builder = importlib.import_module(f"primus.backends.{framework}.argument_builder")
    trainer = importlib.import_module(f"primus.backends.{framework}.{framework}_pretrain_trainer")
    values = builder.namespace_to_dict(params)
    for key in ("override_model", *trainer._PRIMUS_ONLY_PARAMS):
        values.pop(key, None)
    file = builder.export_params_to_yaml(values)
    with open(file, encoding="utf-8") as text:
        want = text.read().splitlines()
    os.unlink(file)
    got = case["files"][0].splitlines()
    return [f"line {i + 1}: want {w!r}, got {g!r}" for i, (w, g) in enumerate(zip(want + [""] * len(got), got + [""] * len(want))) if w != g]


def torchtitan(params, case):
    """Reads the TOML file as TorchTitan does, with the extension of AMD's package."""
    from primus.backends.torchtitan.argument_builder import TorchTitanJobConfigBuilder
    from primus.backends.torchtitan.config_utils import build_job_config_from_namespace
    from torchtitan.config.job_config import JobConfig

    sys.modules["torchtitan.config"].JobConfig = JobConfig
    from torchtitan.config.manager import ConfigManager

    builder = TorchTitanJobConfigBuilder()
    builder.update(params)
    want = plain(build_job_config_from_namespace(builder.finalize()).to_dict())
    given = tomllib.loads(case["files"][0])
    manager = ConfigManager.__new__(ConfigManager)
    manager.config_cls = JobConfig
    got = plain(dataclasses.asdict(manager._dict_to_dataclass(manager._maybe_add_custom_config([], given), given)))
    want["job"]["custom_config_module"] = want["experimental"]["custom_args_module"]
    return differences(want, got)


def megatron(params, case, module, config):
    from primus.backends.megatron.argument_builder import MegatronArgBuilder
    from primus.core.patches import run_patches

    spec = importlib.util.spec_from_file_location("shim", os.environ["SHIM"])
    shim = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(shim)
    silent = SimpleNamespace(write=lambda *_, **__: None)
    got, others = shim.megatron_arguments(json.loads(case["files"][1])["params"], silent)
    shim.add_others(got, others)

    builder = MegatronArgBuilder()
    builder.update(params)
    want = builder.finalize()
    run_patches(
        backend="megatron", phase="build_args", backend_version="0.16.0rc0", model_name=getattr(module, "model", None), module_name=case["module"],
        extra={"backend_args": want, "primus_config": config._legacy, "module_config": module, "runtime_state": None})
    for key, value in vars(params).items():
        if not hasattr(want, key):
            setattr(want, key, value)
    want, given, root = plain(want), plain(params), config._legacy.exp_root_path
    for key, value in want.items():
        if isinstance(value, str) and value != given.get(key):  # a patch has made it, maybe from the run directory
            want[key] = value.replace(os.path.abspath(root), case["root"]).replace(root, case["root"])
    return differences(want, plain(got))


def bridge(params, case):
    """Compares what the recipe is called with."""
    from primus.backends.megatron_bridge.argument_builder import MegatronBridgeArgBuilder
    from primus.backends.megatron_bridge.megatron_bridge_adapter import normalize_megatron_bridge_dataset_args

    builder = MegatronBridgeArgBuilder()
    builder.update(params)
    want = builder.finalize()
    normalize_megatron_bridge_dataset_args(want)
    return differences(plain(want), json.loads(case["files"][1])["params"])


def compare(case):
    from primus.core.config.primus_config import get_module_config, load_primus_config

    with contextlib.redirect_stdout(io.StringIO()):
        config = load_primus_config(case["config"], SimpleNamespace(config=case["config"]))
        module = get_module_config(config, case["module"])
        framework = module.framework
        if framework in ("maxtext", "maxdiffusion"):
            return yaml_file(framework, module.params, case)
        if framework == "megatron_bridge":
            return bridge(module.params, case)
        if framework == "torchtitan":
            return torchtitan(module.params, case)
        return megatron(module.params, case, module, config)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        cases = json.load(file)
    sys.path[:0] = [os.environ[name] for name in ("PRIMUS_CHECKOUT", "MEGATRON_CHECKOUT") if name in os.environ]
    packaging()
    if "TORCHTITAN_CHECKOUT" in os.environ:
        bare("torchtitan", os.path.join(os.environ["TORCHTITAN_CHECKOUT"], "torchtitan"))
        bare("torchtitan.config", os.path.join(os.environ["TORCHTITAN_CHECKOUT"], "torchtitan", "config"))
    import primus.core.utils.module_utils as log

    for name in ("log_rank_0", "log_kv_rank_0", "warning_rank_0", "error_rank_0"):
        setattr(log, name, lambda *_, **__: None)
    for case in cases:
        try:
            found = compare(case)
        except Exception as fault:
            found = [f"AMD's code: {fault!r}"]
        print(json.dumps({"config": case["config"], "framework": case["framework"], "differences": found}), flush=True)


if __name__ == "__main__":
    main()
