"""
What the compliance suite of Open Responses asks, against the server that the environment names. Its package at PyPI has the types that
are generated from the specification: every answer and every event must be one of them.
"""

import base64
import json
import os
from urllib.request import Request, urlopen

import openresponses_types as spec
import pytest

headers = {"authorization": "Bearer " + os.environ["UMPIRE_API_KEY"], "content-type": "application/json"}


def types_of(model):
    """What an event's type may be: an enumeration of one."""
    return [kind.value for kind in model.model_fields["type"].annotation]


event_models = {
    kind: model
    for name, model in vars(spec).items()
    if name.endswith("StreamingEvent") or name == "ErrorStreamingEvent"
    for kind in types_of(model)
}


def ask(**body):
    request = Request(os.environ["UMPIRE_URL"] + "/v1/responses", json.dumps({"model": "sees", **body}).encode(), headers)
    with urlopen(request) as response:
        return response.read().decode()


def answer(**body):
    """The response, whole and streamed, which must be of the specification's types and say the same."""
    whole = spec.ResponseResource.model_validate_json(ask(**body))
    lines = [line for line in ask(**body, stream=True).splitlines() if line.startswith("data: ")]
    events = []
    for line in lines:
        event = json.loads(line.removeprefix("data: "))
        assert event["type"] in event_models, event["type"]
        events.append(event_models[event["type"]].model_validate(event))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    streamed = events[-1].response
    assert [said(item) for item in streamed.output] == [said(item) for item in whole.output]
    assert (whole.status, streamed.status) == ("completed", "completed")
    return whole, [event.type.value for event in events]


def said(item):
    return (item.name, item.arguments) if item.type == "function_call" else [part.text for part in item.content]


def message(role, content):
    return {"type": "message", "role": role, "content": content}


weather = {
    "type": "function",
    "name": "get_weather",
    "description": "Get the current weather for a location",
    "parameters": {"type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]},
}
pixel = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
document = base64.b64encode(b"%PDF-1.1\n\x00%%EOF").decode()


@pytest.mark.parametrize(
    "body",
    [
        {"input": [message("user", "Say hello in exactly 3 words.")]},
        {"input": "Say hello.", "instructions": "Talk like a pirate.", "temperature": 0.5, "metadata": {"a": "b"}},
        {"input": [message("system", "You are a pirate."), message("user", "Say hello.")]},
        {"input": [message("user", "I am Alice."), message("assistant", "Hello!"), message("user", "Who am I?")]},
        {
            "input": [
                message(
                    "user",
                    [
                        {"type": "input_text", "text": "What is it?"},
                        {"type": "input_image", "image_url": f"data:image/png;base64,{pixel}"},
                        {
                            "type": "input_file",
                            "filename": "a.pdf",
                            "file_data": f"data:application/pdf;base64,{document}",
                        },
                    ],
                )
            ]
        },
    ],
    ids=["text", "settings", "system", "turns", "media"],
)
def test_message(body):
    response, events = answer(**body)
    assert [item.type for item in response.output] == ["message"]
    assert {"response.output_text.delta", "response.output_text.done", "response.completed"} <= set(events)


def test_function_call_and_its_output():
    called, events = answer(input="What is the weather in San Francisco?", tools=[weather])
    assert {"response.function_call_arguments.delta", "response.function_call_arguments.done"} <= set(events)
    (call,) = called.output
    assert json.loads(call.arguments)["location"]
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
    ended, _ = answer(input=[result], previous_response_id=called.id, tools=[weather])
    assert [item.type for item in ended.output] == ["message"]
    assert ended.previous_response_id == called.id
