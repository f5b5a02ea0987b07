-- Tells Refrain of changes of the schema and of rights that pass by it: a message in the log of the
-- same transaction. Run this in the database as a superuser. It changes nothing else.
CREATE OR REPLACE FUNCTION public.refrain_ddl() RETURNS event_trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog AS $$
BEGIN
    IF tg_event = 'sql_drop' THEN
        IF NOT EXISTS (SELECT FROM pg_event_trigger_dropped_objects() o
                WHERE NOT o.is_temporary) THEN
            RETURN;
        END IF;
    ELSIF tg_tag LIKE 'DROP %' AND tg_tag <> 'DROP OWNED' THEN
        -- The other trigger tells of it.
        RETURN;
    ELSIF (SELECT bool_and(c.schema_name IS NOT DISTINCT FROM 'pg_temp')
            FROM pg_event_trigger_ddl_commands() c) THEN
        -- Temporary tables are nobody else's.
        RETURN;
    END IF;
    PERFORM pg_logical_emit_message(true, 'refrain', 'ddl');
END $$;
CREATE EVENT TRIGGER refrain_ddl ON ddl_command_end EXECUTE FUNCTION public.refrain_ddl();
CREATE EVENT TRIGGER refrain_drop ON sql_drop EXECUTE FUNCTION public.refrain_ddl();
ALTER EVENT TRIGGER refrain_ddl ENABLE ALWAYS;
ALTER EVENT TRIGGER refrain_drop ENABLE ALWAYS;
