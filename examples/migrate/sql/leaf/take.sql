BEGIN;
UPDATE leaf_alloc SET max_id = max_id + 1000000 WHERE biz_tag = 'orders';
SELECT max_id FROM leaf_alloc WHERE biz_tag = 'orders';
COMMIT;
