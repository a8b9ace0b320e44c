SELECT max(id) FROM orders;
