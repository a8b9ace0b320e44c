-- Functions on PostgreSQL for IDs of the layout {{.Layout}},
-- printed by: tickflake layout sql '{{.Layout}}' --dialect postgres
-- Each can be used in an index. An ID that the layout cannot have gives NULL.

-- The instant at which the tick of an ID begins.
CREATE OR REPLACE FUNCTION tickflake_time(id bigint) RETURNS timestamptz
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT CASE WHEN id BETWEEN 0 AND {{.Largest}} THEN
    (timestamp '{{.Epoch}}' + make_interval(
      days => ((id >> {{.TimeShift}}) * {{.Tick}} / 86400000000)::int,
      secs => (id >> {{.TimeShift}}) * {{.Tick}} % 86400000000 / 1000000.0)) AT TIME ZONE 'UTC' END
$$;

-- The smallest ID of the tick that contains an instant, for conditions such as
--   WHERE id >= tickflake_min_id('2026-03-14 00:00+00') AND id < tickflake_min_id('2026-03-15 00:00+00')
-- An instant before the epoch gives 0, and one after the last tick the largest bigint.
CREATE OR REPLACE FUNCTION tickflake_min_id(instant timestamptz) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT CASE WHEN instant < '{{.Epoch}}+00' THEN 0 WHEN instant >= '{{.End}}+00' THEN {{.Above}} ELSE
    ((extract(epoch FROM instant AT TIME ZONE 'UTC') * 1000000)::bigint - {{.EpochMicros}}) / {{.Tick}} << {{.TimeShift}} END
$$;
{{range .Fields}}
CREATE OR REPLACE FUNCTION tickflake_{{.Name}}(id bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT CASE WHEN id BETWEEN 0 AND {{$.Largest}} THEN id >> {{.Shift}} & {{.Mask}} END
$$;
{{end}}{{range .Months}}
CREATE TABLE {{$.Table}}_{{.Name}} PARTITION OF {{$.Table}} FOR VALUES FROM ({{.From}}) TO ({{.To}});{{end}}
