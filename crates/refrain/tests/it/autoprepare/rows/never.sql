explain (costs off) select * from t where id = 1

drop table if exists into_t
select id into temp into_t from t where id < 3
select * from pg_catalog.pg_class where oid = 0; select 1

select 1; select 'a'

select $1
select id from t where id = $1 and s = 2

select current_query(), 1

select count(*) from pg_prepared_statements where name = 'x'

select count(*) from pg_stat_activity where pid = 0

select count(*) from pg_cursors where name = 'x'

select 1 as a1234567890123456789012345678901234567890123456789012345678901234567890
select 2 as a1234567890123456789012345678901234567890123456789012345678901234567890

insert into w (a, b) select id, 'copied' from t where id < 3 order by id
insert into w (a, b) select id, 'again' from t where id < 2 order by id

insert into w (a, b) values (7, 'r') returning id, a + 1
insert into w (a, b) values (8, 's') returning id, a + 2

insert into ruled values (1)
insert into ruled values (2)

do $$ begin perform 1; end $$

show work_mem

values (U&'d\0061t')
select U&'\0061' || 'x'

select 'a'⏎'b'
select 'c'⏎'d'

select 'a' 'b'
select 1 from

select date('2020-01-01')
select date('2020-01-02')

select regclass('t')::text
select regclass('w')::text

lock table t in access share mode
set local x.y = '1'
