"""The commands about files that people write: `tracegrade validate`, `print-config` and `schema`."""

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from collector.commands.arguments import add_config, path_text
from collector.commands.command import EXIT_OK, Command, CommandContext
from collector.commands.offline import OfflineCriteria
from collector.commands.output import print_warnings
from collector.configuration import print_configuration, schema_documents
from collector.container import container_memory
from collector.criteria import UNCOVERED_AGENTS, CriteriaStore, run_criteria_tests
from collector.memory_plan import plan_memory
from collector.workers.offline import OfflineWorkers
from processors.documents import InvalidInput, Problem
from processors.spans import NATIVE, NATIVE_REASON

_DOCUMENTS = ("config", "criteria", "objectives", "run")


def _validate(options: Namespace, context: CommandContext) -> int:
    config = context.service_file(options.config)
    offline = OfflineCriteria(config.processors.evaluation, context.environment)
    plan_memory(config, container_memory())
    subjects: list[tuple[str, Sequence[str], bool]] = [(path, [path], False) for path in options.criteria]
    if options.config is not None or not options.criteria:
        subject = str(options.config or "the built-in configuration")
        subjects.insert(0, (subject, config.criteria_patterns(), True))
    checked = []
    problems: list[Problem] = []
    warnings: list[Problem] = []
    for subject, patterns, is_all in subjects:
        store = CriteriaStore(
            patterns,
            environment=context.environment,
            evaluators=offline.evaluators.known,
            problems=problems,
        )
        warnings += store.warnings
        with OfflineWorkers(offline.evaluators) as workers:
            problems += run_criteria_tests(
                store.cases,
                store.current,
                workers,
                store.refused,
                prices=offline.evaluation.price_table(),
                warnings=warnings,
            )
        if not store.refused:
            messages = [f'no evaluation applies to "{name}"' for name in store.current.without_evaluations()]
            if is_all and not store.current.covers_every_agent:
                messages.append(UNCOVERED_AGENTS)
            warnings += [Problem(subject, 0, "", message) for message in messages]
        tests = f", {len(store.cases)} of {len(store.cases)} tests pass" if store.cases else ""
        checked.append(f"{subject}: valid, criteria for {store.current.describe()}{tests}")
    print_warnings(list(dict.fromkeys(warnings)))
    if problems:
        raise InvalidInput(_in_order(problems))
    print("\n".join(checked))
    return EXIT_OK


def _in_order(problems: Sequence[Problem]) -> list[Problem]:
    """`problems`, each once, those of one file together and in the order of its lines."""
    files = list(dict.fromkeys(problem.file for problem in problems))
    return sorted(dict.fromkeys(problems), key=lambda problem: (files.index(problem.file), problem.line))


def _print_config(options: Namespace, context: CommandContext) -> int:
    config = context.service_file(options.config)
    reader = f"tracegrade-native {NATIVE.VERSION}, experimental" if NATIVE else f"Python, {NATIVE_REASON}"
    print(f"# Requests and spans are read by {reader}.", print_configuration(config), sep="\n", end="")
    return EXIT_OK


def _schema(options: Namespace, context: CommandContext) -> int:
    config = context.service_file(options.config)
    documents = schema_documents(config.processors.evaluation.custom_evaluators)
    print(json.dumps(documents[options.document], indent=2, ensure_ascii=False))
    return EXIT_OK


def _add_criteria(parser: ArgumentParser) -> None:
    add_config(parser)
    parser.add_argument(
        "criteria", nargs="*", type=path_text, metavar="CRITERIA", help="further criteria files or folders"
    )


def _add_document(parser: ArgumentParser) -> None:
    parser.add_argument("document", nargs="?", choices=_DOCUMENTS, default="config")
    add_config(parser, "a service file; the schema of criteria then takes its custom evaluators as well")


VALIDATE = Command(_add_criteria, _validate)
PRINT_CONFIG = Command(add_config, _print_config)
SCHEMA = Command(_add_document, _schema)
