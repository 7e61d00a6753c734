"""Which spans of a graph are runs where every node bears its own place as that of the graph around it."""

from collections.abc import Mapping

from processors.frameworks.langgraph import agent_of

CONVERSATION = (
    '{"messages":[{"lc":1,"type":"constructor","id":["langchain_core","messages","HumanMessage"]}]}'
)
STEP = '{"messages":[{"lc":1,"type":"constructor","id":["langchain_core","messages","AIMessage"]}]}'
PROMPT = '{"output":[{"lc":1,"type":"constructor","id":["langchain_core","messages","HumanMessage"]}]}'
PLACE = {"langgraph_checkpoint_ns": "a:1", "checkpoint_ns": "a:1"}


def agent(name: str, told: Mapping[str, str], output: str | None, *, passed_on: bool = False) -> str | None:
    metadata = {**PLACE, **told}
    return agent_of(
        name,
        lambda key: metadata.get(key, ""),
        lambda: output,
        has_places=False,
        passed_on=lambda: passed_on,
    )


def test_the_graph_of_an_agent_bears_its_name() -> None:
    assert "planner" == agent("planner", {"lc_agent_name": "planner", "langgraph_node": "n"}, CONVERSATION)


def test_nodes_of_an_agents_graph_are_steps_whatever_they_put_out() -> None:
    told = {"lc_agent_name": "planner", "langgraph_node": "model_request"}

    assert [None, None, None] == [
        agent("model_request", told, output) for output in (STEP, None, CONVERSATION)
    ]


def test_the_beginning_of_a_graph_is_a_step() -> None:
    assert agent("__start__", {"langgraph_node": "__start__"}, CONVERSATION) is None


def test_a_graph_in_a_node_of_its_name_is_a_run_and_a_node_that_adds_a_message_is_none() -> None:
    told = {"langgraph_node": "sub"}

    assert ["sub", None] == [agent("sub", told, output) for output in (CONVERSATION, STEP)]


def test_an_agent_that_runs_within_a_call_is_a_run() -> None:
    told = {"lc_agent_name": "boss", "langgraph_node": "tools"}

    assert "sub" == agent("sub", told, CONVERSATION)


def test_a_prompt_that_is_put_into_messages_is_a_step() -> None:
    assert agent("prompt", {"langgraph_node": "agent"}, PROMPT) is None


def test_a_graph_that_passed_the_conversation_on_is_a_run_though_it_put_nothing_out() -> None:
    assert ["sub", None, None] == [
        agent("sub", {"langgraph_node": "sub"}, None, passed_on=True),
        agent("tools", {"langgraph_node": "tools"}, None, passed_on=True),
        agent("sub", {"langgraph_node": "sub"}, None),
    ]


def test_without_content_what_a_call_runs_is_taken_for_an_agent_and_what_a_node_runs_is_not() -> None:
    assert ["sub", None] == [
        agent("sub", {"langgraph_node": "tools"}, "__REDACTED__"),
        agent("sub", {"langgraph_node": "agent"}, "__REDACTED__"),
    ]
