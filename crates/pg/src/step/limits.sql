SELECT pg_catalog.set_config('lock_timeout', '10ms', true),
    pg_catalog.set_config('statement_timeout', '10s', true),
    pg_catalog.set_config(CASE WHEN pg_catalog.current_setting('jit', true) IS NULL
        THEN 'refrain.jit' ELSE 'jit' END, 'off', true)
