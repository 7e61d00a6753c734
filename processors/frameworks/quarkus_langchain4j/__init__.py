"""quarkus_langchain4j."""
