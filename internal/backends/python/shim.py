"""Starts Megatron-LM, Megatron-Bridge or TorchTitan with the arguments that primus has prepared.

The argument of this program is a JSON file that primus has written. The program makes the arguments of the framework from it, runs
the patches of AMD's Python package where that can be imported, calls the framework, and reports in a file of JSON lines.
"""

import argparse
import builtins
import enum
import functools
import importlib
import importlib.util
import inspect
import json
import os
import re
import runpy
import sys
from types import SimpleNamespace


class Report:  # lines of JSON for primus, from the first rank only
    def __init__(self, path, rank):
        self.file = open(path if rank == 0 else os.devnull, "w", encoding="utf-8")

    def write(self, event, **fields):
        shown = json.dumps({"event": event, **fields}, default=lambda v: vars(v) if isinstance(v, SimpleNamespace) else str(v))
        print(shown, file=self.file, flush=True)


def nested(value):
    """Turns mappings into namespaces, as the arguments of Primus have them."""
    if isinstance(value, dict):
        return SimpleNamespace(**{key: nested(each) for key, each in value.items()})
    return [nested(each) for each in value] if isinstance(value, list) else value


def tell_arguments(report, spec, values, added):
    """Reports the arguments without secrets, and the versions of what is imported by now."""
    public = {key: value for key, value in values.items() if key not in spec.get("secrets", {})}
    versions = {name: getattr(sys.modules.get(name), "__version__", None) for name in ("torch", "transformer_engine", "primus_turbo")}
    report.write("arguments", total=len(values), added=added, values=public, versions={name: v for name, v in versions.items() if v})


def converted(convert, value):
    """Returns what the parser makes of a text; other values have their type already."""
    if isinstance(value, list):
        return [converted(convert, each) for each in value]
    return convert(value) if isinstance(value, str) else value


def megatron_arguments(params, report):
    """Returns the defaults of Megatron's own parser with the parameters over them, and the parameters it does not know."""
    from megatron.training.arguments import add_megatron_arguments

    parser = add_megatron_arguments(argparse.ArgumentParser(allow_abbrev=False))
    args = SimpleNamespace(**vars(parser.parse_args([])))
    enums = {a.dest: a.type for a in parser._actions if callable(a.type) and a.choices and all(isinstance(c, enum.Enum) for c in a.choices)}
    others = {}
    for key, value in params.items():
        if not hasattr(args, key):
            others[key] = value
            continue
        if key in enums and value is not None:
            try:
                value = converted(enums[key], value)
            except Exception as fault:
                report.write("warning", text=f"argument {key}: {value!r} is no member of its enumeration: {fault!r}")
        setattr(args, key, nested(value))
    args.world_size, args.rank, args.local_rank = (
        int(os.environ.get(name, default)) for name, default in (("WORLD_SIZE", 1), ("RANK", 0), ("LOCAL_RANK", 0)))
    return args, others


def add_others(args, others):
    """Adds the parameters that the framework does not know; patches and AMD's package read them."""
    added = [key for key in others if not hasattr(args, key)]
    vars(args).update({key: nested(others[key]) for key in added})
    return added


def provide(modules, name):
    """Returns the attribute of the first module that has it."""
    for module in modules:
        try:
            found = getattr(importlib.import_module(module), name, None)
        except ModuleNotFoundError as fault:
            if fault.name is None or not module.startswith(fault.name):
                raise  # the module is there, and what it needs is not
            continue
        if found is not None:
            return found
    return None


def megatron_model(kind, amd):
    """Returns the function that makes the model."""
    if amd:
        return importlib.import_module("primus.core.utils.import_utils").get_model_provider(model_type=kind)
    if kind not in ("gpt", "mamba"):
        raise SystemExit(f"model_type {kind!r} needs AMD's Python package primus, which cannot be imported; without it there are gpt and mamba")
    make = provide(["model_provider", f"pretrain_{kind}"], "model_provider")
    if make is None:
        raise SystemExit(f"the source tree has neither model_provider.py nor pretrain_{kind}.py with a function model_provider")
    builder = provide([f"{kind}_builders"], f"{kind}_builder")
    return functools.partial(make, builder) if builder else make


def megatron(spec, report, amd):
    from megatron.core.enums import ModelType
    import megatron.training.arguments as arguments
    import megatron.training.initialize as initialize
    args, others = megatron_arguments(spec["params"], report)
    patches = Patches(spec, report, amd, args)
    amd = patches.amd
    patches.run("build_args")
    added = add_others(args, others)
    patches.module.params = args  # what later phases see
    tell_arguments(report, spec, vars(args), added)
    arguments.parse_args = initialize.parse_args = lambda *_, **__: args
    stage, trainer = spec["stage"], spec.get("trainer_class") or "MegatronPretrainTrainer"
    if amd and (stage != "pretrain" or trainer != "MegatronPretrainTrainer"):
        return amd_trainer(spec, args, patches)
    if stage != "pretrain" or trainer != "MegatronPretrainTrainer":
        raise SystemExit(f"stage {stage} with trainer {trainer} needs AMD's Python package primus, which cannot be imported")
    patches.run("setup")
    if amd:
        importlib.import_module("primus.backends.megatron.training.global_vars").set_primus_global_variables(args)
    patches.run("before_train")
    from megatron.training import pretrain  # with what the patches have changed
    kind = args.model_type if isinstance(getattr(args, "model_type", None), str) else "gpt"
    name, names = "pretrain_mamba" if kind == "mamba" else "pretrain_gpt", inspect.signature(pretrain).parameters
    if "cfg_container" in names:  # of later versions, whose own main makes a configuration of the arguments
        runpy.run_module(name, run_name="__main__")
        return patches.run("after_train")
    entry = importlib.import_module(name)
    datasets = entry.train_valid_test_datasets_provider
    datasets.is_distributed = True  # its own main sets it, without which ranks wait for each other with tensor parallelism
    given = {"args_defaults": {"tokenizer_type": "GPT2BPETokenizer"}, "extra_args_provider": None, "store": None}
    restart = provide(["megatron.training.inprocess_restart"], "maybe_wrap_for_inprocess_restart")
    if restart:
        pretrain, given["store"] = restart(pretrain)
    given = {key: value for key, value in given.items() if key in names}
    pretrain(datasets, megatron_model(kind, amd), ModelType.encoder_or_decoder, entry.forward_step, **given)
    patches.run("after_train")


def call_accepted(function, params, report):
    """Calls a recipe with those of the parameters that it and what it calls accept."""
    params = dict(params)
    while True:
        try:
            return function(**params)
        except TypeError as fault:
            name = re.search(r"unexpected keyword arguments? '([^']+)'", str(fault))
            if not name or name[1] not in params:
                raise
            del params[name[1]]
            report.write("dropped", key=name[1], by=function.__name__)


def put(config, params, report, path=""):
    """Puts values into the fields of a configuration that have a value of the same type."""
    for key, value in params.items():
        if value is None or not hasattr(config, key):
            continue
        field = getattr(config, key)
        if isinstance(value, dict) and hasattr(field, "__dataclass_fields__"):
            put(field, value, report, f"{path}{key}.")
        elif type(field) is type(value):
            setattr(config, key, value)
        else:
            report.write("dropped", key=path + key, by=f"a field of type {type(field).__name__}")


def bridge(spec, report, amd):
    params = spec["params"]
    name, flavor = params["recipe"], params["flavor"]
    places = [name] if name.startswith("primus.") else []
    places += [f"primus.backends.megatron_bridge.recipes.{name}", f"megatron.bridge.recipes.{name}", name]
    recipe = provide(places, flavor)
    if recipe is None:
        raise SystemExit(f"recipe {name!r} has no flavor {flavor!r}: looked in " + ", ".join(places))
    patches = Patches(spec, report, amd, nested(params))
    for phase in ("build_args", "setup", "before_train"):
        patches.run(phase)
    config = call_accepted(recipe, params, report)
    put(config, params, report)
    for section, key in (("logger", "log_interval"), ("train", "eval_interval"), ("train", "eval_iters"), ("checkpoint", "save_interval")):
        if params.get(key) is not None:
            setattr(getattr(config, section), key, int(params[key]))
    if params.get("skip_save"):
        config.checkpoint.save_interval, config.checkpoint.save = 0, None
    tell_arguments(report, spec, params, [])
    if spec["stage"] == "pretrain":
        from megatron.bridge.training.gpt_step import forward_step
        from megatron.bridge.training.pretrain import pretrain as train
    else:
        from megatron.bridge.training.config import runtime_config_update
        from megatron.bridge.training.finetune import finetune as train
        from megatron.bridge.training.vlm_step import forward_step
        runtime_config_update(config)
    train(config, forward_step_func=forward_step)
    patches.run("after_train")


class Patches:
    """The patches of AMD's package, in the order in which it runs them; none without the package."""
    def __init__(self, spec, report, amd, args):
        self.spec, self.report, self.args, self.amd, names = spec, report, args, amd, ("framework", "model", "trainer_class")
        self.module = SimpleNamespace(name=spec["module"], params=nested(spec["params"]), **{name: spec.get(name) for name in names})
        self.experiment = SimpleNamespace(**spec["experiment"], exp_root_path=spec["experiment"]["root"], exp_meta_info=spec["experiment"])
        if not amd:
            return
        printing = builtins.print
        try:
            importlib.import_module("primus.core.runtime.logging").init_worker_logger(self.experiment, spec["module"], self.module)
            importlib.import_module("primus.backends." + spec["framework"])
        except ModuleNotFoundError as fault:
            if spec["patches"]["strict"]:
                raise
            self.amd = False
            report.write("warning", text=f"AMD's Python package primus is there, but not what it imports ({fault}): none of its patches runs")
        builtins.print = printing  # AMD's logger hides what is printed, and the lines of the steps with it

    def run(self, phase):
        if not self.amd:
            return
        from primus.core.patches.context import PatchContext
        from primus.core.patches.patch_registry import PatchRegistry

        spec = self.spec
        context = PatchContext(
            backend=spec["framework"], phase=phase, backend_version=spec.get("version"), primus_version=None, model_name=spec.get("model"),
            module_name=spec["module"], platform=None, extra={
                "backend_args": self.args, "primus_config": self.experiment, "module_config": self.module,
                "runtime_state": SimpleNamespace(last_metrics={})})
        chosen = [p for p in PatchRegistry.iter_patches(backend=spec["framework"], phase=phase) if self.applies(p, context, phase)]
        for patch in sorted(chosen, key=lambda p: p.priority):
            try:
                patch.apply(context)
            except Exception as fault:
                self.report.write("patch", phase=phase, id=patch.id, result="failed", reason=repr(fault))
                if spec["patches"]["strict"]:
                    raise
            else:
                self.report.write("patch", phase=phase, id=patch.id, result="applied")

    def applies(self, patch, context, phase):
        only, wanted, reason = self.spec["patches"]["only"], getattr(patch, "backend_version_patterns", None), "condition not met"
        if only is not None and patch.id not in only:
            reason = "not among --patches"
        elif patch.applies_to(context):
            return True
        elif wanted and not patch._match_backend_version(context):
            reason = f"version {context.backend_version} is none of {wanted}"
        self.report.write("patch", phase=phase, id=patch.id, result="skipped", reason=reason)
        return False

    def adapter(self):
        return importlib.import_module("primus.core.backend.backend_registry").BackendRegistry.get_adapter(self.spec["framework"])


def torchtitan(spec, report, amd):
    patches = Patches(spec, report, amd, None)
    if patches.amd:
        patches.args = patches.module.params = patches.adapter().convert_config(patches.module.params)
        tell_arguments(report, spec, vars(patches.args), [])
    for phase in ("build_args", "setup", "before_train"):
        patches.run(phase)
    train = importlib.import_module("torchtitan.train")
    train.main(train.Trainer)
    patches.run("after_train")


def amd_trainer(spec, args, patches):
    trainer = patches.adapter().load_trainer_class(stage=spec["stage"], trainer_class=spec.get("trainer_class"))(backend_args=args)
    patches.run("setup")
    trainer.setup()
    trainer.init()
    patches.run("before_train")
    trainer.train()
    patches.run("after_train")
    trainer.cleanup()


def main():
    spec = json.load(open(sys.argv[1], encoding="utf-8"))
    spec["params"].update({key: os.environ.pop(variable, None) for key, variable in spec.get("secrets", {}).items()})
    sys.argv = sys.argv[:1] + sys.argv[2:]  # the command line of the framework
    sys.path[:0] = [path for path in spec["sys_path"] if path not in sys.path]
    report = Report(spec["report"], int(os.environ.get("RANK", 0)))
    amd = importlib.util.find_spec("primus") is not None and importlib.util.find_spec("primus.core") is not None
    report.write("start", python=sys.version.split()[0], amd_patches=amd)
    {"megatron": megatron, "megatron_bridge": bridge, "torchtitan": torchtitan}[spec["framework"]](spec, report, amd)
    report.write("end")


if __name__ == "__main__":
    main()
