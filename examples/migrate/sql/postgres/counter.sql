SELECT last_value FROM orders_id_seq;
