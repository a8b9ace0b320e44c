-- before
CREATE TABLE leaf_alloc (
  biz_tag VARCHAR(128) NOT NULL PRIMARY KEY,
  max_id BIGINT NOT NULL,
  step INT NOT NULL
);
INSERT INTO leaf_alloc VALUES ('orders', 1, 30);

-- old
BEGIN;
UPDATE leaf_alloc SET max_id = max_id + step WHERE biz_tag = 'orders';
SELECT max_id - step FROM leaf_alloc WHERE biz_tag = 'orders';
COMMIT;

-- take
BEGIN;
UPDATE leaf_alloc SET max_id = max_id + 1000000 WHERE biz_tag = 'orders';
SELECT max_id FROM leaf_alloc WHERE biz_tag = 'orders';
COMMIT;

-- largest
SELECT max_id FROM leaf_alloc WHERE biz_tag = 'orders';

-- end
DELETE FROM leaf_alloc WHERE biz_tag = 'orders';
