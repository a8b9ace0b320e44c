CREATE TABLE tiny_id_info (
  biz_type VARCHAR(63) NOT NULL PRIMARY KEY,
  max_id BIGINT NOT NULL,
  step INT NOT NULL,
  delta INT NOT NULL,
  remainder INT NOT NULL,
  version BIGINT NOT NULL
);
INSERT INTO tiny_id_info VALUES ('orders', 1, 31, 1, 0, 0);
