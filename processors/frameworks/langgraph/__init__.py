"""LangGraph and LangChain, as several conventions tell of them."""
