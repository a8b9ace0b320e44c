BEGIN;
ALTER SEQUENCE orders_id_seq INCREMENT BY 1;
SELECT setval('orders_id_seq', nextval('orders_id_seq') + 999999);
COMMIT;
