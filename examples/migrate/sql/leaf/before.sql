CREATE TABLE leaf_alloc (
  biz_tag VARCHAR(128) NOT NULL PRIMARY KEY,
  max_id BIGINT NOT NULL,
  step INT NOT NULL
);
INSERT INTO leaf_alloc VALUES ('orders', 1, 30);
