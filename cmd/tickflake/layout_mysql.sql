-- Functions on MySQL and MariaDB for IDs of the layout {{.Layout}},
-- printed by: tickflake layout sql '{{.Layout}}' --dialect mysql
-- Times are in UTC. An ID that the layout cannot have gives NULL.

-- The instant at which the tick of an ID begins.
DROP FUNCTION IF EXISTS tickflake_time;
CREATE FUNCTION tickflake_time(id BIGINT) RETURNS DATETIME(6) DETERMINISTIC NO SQL
RETURN CASE WHEN id BETWEEN 0 AND {{.Largest}} THEN
  TIMESTAMPADD(MICROSECOND, (id >> {{.TimeShift}}) * {{.Tick}}, TIMESTAMP'{{.Epoch}}') END;

-- The smallest ID of the tick that contains an instant, for conditions such as
--   WHERE id >= tickflake_min_id('2026-03-14') AND id < tickflake_min_id('2026-03-15')
-- An instant before the epoch gives 0, and one after the last tick the largest bigint.
DROP FUNCTION IF EXISTS tickflake_min_id;
CREATE FUNCTION tickflake_min_id(instant DATETIME(6)) RETURNS BIGINT DETERMINISTIC NO SQL
RETURN CASE WHEN instant < TIMESTAMP'{{.Epoch}}' THEN 0 WHEN instant >= TIMESTAMP'{{.End}}' THEN {{.Above}} ELSE
  TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'{{.Epoch}}', instant) DIV {{.Tick}} << {{.TimeShift}} END;
{{range .Fields}}
DROP FUNCTION IF EXISTS tickflake_{{.Name}};
CREATE FUNCTION tickflake_{{.Name}}(id BIGINT) RETURNS BIGINT DETERMINISTIC NO SQL
RETURN CASE WHEN id BETWEEN 0 AND {{$.Largest}} THEN id >> {{.Shift}} & {{.Mask}} END;
{{end}}
