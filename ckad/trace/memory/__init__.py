"""The memory that traced arrays name: storages of an open trace, and views of them."""
