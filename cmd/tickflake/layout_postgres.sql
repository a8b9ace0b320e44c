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
{{end}}{{with .Next}}
-- The next ID of this database, for a column: id bigint PRIMARY KEY DEFAULT tickflake_next()
-- The database is node {{.Node}}, and nothing else may be: a copy of it that takes inserts needs another number. Reserve the
-- number in the store that your programs share. If 'lease list' shows it already, begin when its UNTIL is past:
--   tickflake lease reserve {{.Node}} --until {{.Until}} --store URL
-- The sequence has the last tick and the sequence number within it. While the clock is behind, it counts on. Other roles
-- that insert need: GRANT UPDATE ON SEQUENCE tickflake_slot TO ...
CREATE SEQUENCE IF NOT EXISTS tickflake_slot MINVALUE 0 START 0 MAXVALUE {{.LastSlot}};

CREATE OR REPLACE FUNCTION tickflake_next() RETURNS bigint
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  slot bigint;
  first bigint; -- of the clock's tick
BEGIN
  -- The lock ends with this block and not with the transaction, since the block ends with an exception. What
  -- sequences count stays.
  BEGIN
    PERFORM pg_advisory_xact_lock({{.Lock}}, 'tickflake_slot'::regclass::oid::int);
    slot := nextval('tickflake_slot');
    first := ((extract(epoch FROM clock_timestamp()) * 1000000)::bigint - {{$.EpochMicros}}) / {{$.Tick}} << {{.SequenceBits}};
    IF slot < first THEN
      slot := setval('tickflake_slot', first);
    END IF;
    RAISE SQLSTATE 'TICK0';
  EXCEPTION WHEN SQLSTATE 'TICK0' THEN
  END;
  RETURN slot >> {{.SequenceBits}} << {{$.TimeShift}} | {{.NodeBits}} | ((slot & {{.SequenceMask}}) << {{.SequenceShift}});
END
$$;
{{end}}
