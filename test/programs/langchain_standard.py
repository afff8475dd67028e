"""LangChain's standard tests, on its clients of OpenAI and Anthropic, against the server that the environment names."""

import os

from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from langchain_tests.integration_tests import ChatModelIntegrationTests, EmbeddingsIntegrationTests

url = os.environ["UMPIRE_URL"]
key = os.environ["UMPIRE_API_KEY"]
openai = {"model": "far", "base_url": f"{url}/v1", "api_key": key}


class TestChatCompletions(ChatModelIntegrationTests):
    chat_model_class = ChatOpenAI
    # With another base address than OpenAI's it asks for usage only when told to.
    chat_model_params = {**openai, "stream_usage": True}
    model_override_value = "other"
    supports_json_mode = True
    supports_anthropic_inputs = True


class TestResponses(ChatModelIntegrationTests):
    chat_model_class = ChatOpenAI
    chat_model_params = {**openai, "use_responses_api": True}
    model_override_value = "other"
    supports_json_mode = True
    supports_anthropic_inputs = True


class TestMessages(ChatModelIntegrationTests):
    chat_model_class = ChatAnthropic
    chat_model_params = {"model": "far", "base_url": url, "api_key": key}
    model_override_value = "other"
    supports_anthropic_inputs = True


class TestEmbeddings(EmbeddingsIntegrationTests):
    embeddings_class = OpenAIEmbeddings
    # It would fetch OpenAI's tokenizer.
    embedding_model_params = {**openai, "model": "all-minilm-l6-v2", "check_embedding_ctx_length": False}
