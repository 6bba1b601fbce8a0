CREATE OR REPLACE FUNCTION dead_letters_awaited() RETURNS SETOF text LANGUAGE sql STABLE AS $$ SELECT NULL::text WHERE false $$;
DROP TRIGGER IF EXISTS claimed ON dead_letter_outbox;
DROP FUNCTION IF EXISTS dead_letters_claimed();
DROP FUNCTION IF EXISTS dead_letters_mark_edited(bigint, text[], timestamptz[], bytea[]);
DROP FUNCTION IF EXISTS dead_letters_edit_of(text);
DROP TABLE IF EXISTS dead_letter_edits;
