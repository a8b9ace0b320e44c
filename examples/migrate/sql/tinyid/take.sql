BEGIN;
UPDATE tiny_id_info SET max_id = max_id + 1000000, version = version + 1 WHERE biz_type = 'orders';
SELECT max_id FROM tiny_id_info WHERE biz_type = 'orders';
COMMIT;
