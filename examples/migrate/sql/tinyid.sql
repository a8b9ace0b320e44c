-- before
CREATE TABLE tiny_id_info (
  biz_type VARCHAR(63) NOT NULL PRIMARY KEY,
  max_id BIGINT NOT NULL,
  step INT NOT NULL,
  delta INT NOT NULL,
  remainder INT NOT NULL,
  version BIGINT NOT NULL
);
INSERT INTO tiny_id_info VALUES ('orders', 1, 31, 1, 0, 0);

-- read
SET @before = (SELECT CONCAT(max_id, ' ', version) FROM tiny_id_info WHERE biz_type = 'orders');

-- claim
UPDATE tiny_id_info SET max_id = max_id + step, version = version + 1
  WHERE biz_type = 'orders' AND version = SUBSTRING_INDEX(@before, ' ', -1);
SELECT IF(ROW_COUNT() = 1, CAST(SUBSTRING_INDEX(@before, ' ', 1) AS SIGNED) + 1, 0) FROM tiny_id_info WHERE biz_type = 'orders';

-- take
BEGIN;
UPDATE tiny_id_info SET max_id = max_id + 1000000, version = version + 1 WHERE biz_type = 'orders';
SELECT max_id FROM tiny_id_info WHERE biz_type = 'orders';
COMMIT;

-- largest
SELECT max_id FROM tiny_id_info WHERE biz_type = 'orders';

-- end
DELETE FROM tiny_id_info WHERE biz_type = 'orders';
