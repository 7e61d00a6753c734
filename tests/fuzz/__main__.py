"""Fuzzes for long, guided by coverage: `python -m tests.fuzz [TARGET...] [--seconds S] [--inputs N]`.

Each target runs in a process of its own. With `--plain`, or without atheris, inputs are varied without
guidance. What breaks a promise stays as `crash-*` in the folder `.fuzz/TARGET`, beside the inputs that
reached new code; move it to the corpus with the mending.
"""

import argparse
import importlib.util
import subprocess
import sys
import time
from pathlib import Path

OUT = Path(".fuzz")


def main() -> int:
    """Run the targets one after the other; 1 if one of them failed."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m tests.fuzz")
    parser.add_argument("targets", nargs="*")
    parser.add_argument("--seconds", type=int, default=600, help="for each target")
    parser.add_argument(
        "--inputs", type=int, default=0, help="for each target; 0: as many as come in the time"
    )
    parser.add_argument("--seed", type=int, default=0, help="0: another one each time")
    parser.add_argument("--plain", action="store_true", help="without coverage")
    options = parser.parse_args()
    plain = options.plain or importlib.util.find_spec("atheris") is None
    if len(options.targets) == 1:
        return _fuzz_one(options.targets[0], options, plain=plain)
    from tests.fuzz.targets import TARGETS

    failed = []
    for name in options.targets or TARGETS:
        command = [sys.executable, "-m", "tests.fuzz", name, *sys.argv[1 + len(options.targets) :]]
        if subprocess.run(command, check=False).returncode:
            failed.append(name)
    print("failed: " + ", ".join(failed) if failed else "no crash, no hang, no growth")
    return 1 if failed else 0


def _fuzz_one(name: str, options: argparse.Namespace, *, plain: bool) -> int:
    seed = options.seed or time.time_ns() % 2**31
    if plain:
        from tests.fuzz.driver import fuzz
        from tests.fuzz.targets import TARGETS

        inputs = options.inputs or 2**62
        print(f"{name}: {fuzz(TARGETS[name], inputs=inputs, seconds=options.seconds, seed=seed)}")
        return 0
    return _fuzz_guided(name, options, seed)


def _fuzz_guided(name: str, options: argparse.Namespace, seed: int) -> int:
    import atheris

    with atheris.instrument_imports(include=["collector", "processors"]):
        from tests.fuzz.targets import TARGETS
    from random import Random

    from tests.fuzz.driver import CORPUS, MAX_SECONDS, read_corpus

    target = TARGETS[name]
    corpus = read_corpus(name)
    out = OUT / name
    out.mkdir(parents=True, exist_ok=True)

    def vary(data: bytes, max_size: int, number: int) -> bytes:
        """Half of the time as the target knows how, half as the fuzzer does."""
        chance = Random(number)
        if chance.random() < 0.5:
            return bytes(atheris.Mutate(data, max_size))
        return target.mutate(data, corpus, chance)[:max_size]

    flags = {
        "max_len": target.max_bytes,
        "seed": seed,
        "max_total_time": options.seconds,
        "runs": options.inputs or -1,
        "timeout": round(MAX_SECONDS),
        "rss_limit_mb": 1024,
        "artifact_prefix": f"{out}/",
        "print_final_stats": 1,
        "reload": 0,
    }
    arguments = [sys.argv[0], str(out), str(CORPUS / name), *(f"-{key}={flags[key]}" for key in flags)]
    atheris.Setup(arguments, target.check, custom_mutator=vary)
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
