select id, name from t where id = 1
select id, name from t where id = 2
select id, name from t where id = 99

select a.id from t a join t b on a.id = b.id and b.s > 3 order by a.id
select a.id from t a join t b on a.id = b.id and b.s > 17 order by a.id

select count(*) from t having count(*) > 1
select count(*) from t having count(*) > 100

select id from t where id between 1 and 3 order by id
select id from t where id between 3 and 1 order by id

select id from t where id in (1, 3, 5) order by id
select id from t where id in (2, 2, 40) order by id

select id from t where name in ('name 1', 'x') order by id
select id from t where name in ('', 'name 7') order by id

select id from t where name like 'name 1%' order by id
select id from t where name like '%2' order by id

select id from t where name like 'name!_%' escape '!' order by id
select id from t where name like 'name$ 1%' escape '$' order by id

select id from t where name ~ '^name [12]$' order by id
select id from t where name ~ '0' order by id

select id from t where name similar to 'name (1|2)' order by id
select id from t where name similar to '%7' order by id

select id + 1, id - 2, id * 3, id / 2, id % 2, b + 1, s + 1 from t where id = 4
select id + 9, id - 8, id * 7, id / 6, id % 5, b + 4, s + 3 from t where id = 4

select name || 'x', 'y' || name from t where id = 3
select name || '', 'é' || name from t where id = 4

insert into w (a, b) values (1, 'one'), (2, 'two')
insert into w (a, b) values (-3, 'it''s'), (4, E'a\nb')

insert into w (a, b, c) values (1, $$one$$, '{1,2}')
insert into w (a, b, c) values (2, $$o'ne$$, '{}')

insert into plain (a, b) select id, 'copied' from t where id < 3 order by id
insert into plain (a, b) select id, 'again' from t where id < 2 order by id

insert into plain (a, b) values (7, 'r') returning a + 1, b || '!', 'said'
insert into plain (a, b) values (8, 's') returning a + 2, b || '?', 'told'

insert into w (a, b) values (7, default), (1, 'b')
insert into w (a, b) values (8, default), (2, 'c')

update w set a = 5, b = 'five' where id = 1
update w set a = 6, b = 'six' where id = 2

update w set (a, b) = (5, 'multi') where id = 1
update w set (a, b) = (6, 'assign') where id = 2

update w set (a, b) = (select 7, 'sub') where id = 1
update w set (a, b) = (select 8, 'query') where id = 2

update w set c[2] = 7 where id = 1 returning c
update w set c[3] = 9 where id = 2 returning c

update w set j['k'] = '1' where id = 1 returning j
update w set j['l'] = '"x"' where id = 1 returning j

update w set a = a + 1 where b = 'six' and a > 2 returning a
update w set a = a + 10 where b = 'x' and a > -2 returning a

delete from w where id = 3
delete from w where id = 4 

insert into target values (1, 'a') on conflict (a) do update set b = excluded.b || 'x' where target.b <> 'q'
insert into target values (2, 'b') on conflict (a) do update set b = excluded.b || 'y' where target.b <> 'r'

merge into target using (values (1, 'm')) as s(a, b) on target.a = s.a when matched and s.b > 'a' then update set b = 'up' when not matched then insert values (3, 'new')
merge into target using (values (9, 'n')) as s(a, b) on target.a = s.a when matched and s.b > 'z' then update set b = 'do' when not matched then insert values (9, 'old')

select 1, 2.5, 'text', B'101', X'1F', 3000000000, 99999999999999999999
select 7, .5, '', B'', X'0', 4000000000, 10000000000000000000

select 1 as one, 'x' as two from t limit 2
select 2 as one, 'y' as two from t limit 3

select id from t order by id limit 2 offset 1
select id from t order by id limit 3 offset 0

select s / 4 from t order by s / s, id fetch first 2 rows with ties
select s / 4 from t order by s / s, id fetch first 5 rows with ties

select generate_series(1, 3)
select generate_series(3, 5)

select * from generate_series(1, 3) g, unnest(array[1, 2]) u order by g, u
select * from generate_series(2, 3) g, unnest(array[3, 4]) u order by g, u

select twice(4), kind(1), kind(3000000000), kind(1.5), kind('x')
select twice(-4), kind(0), kind(5000000000), kind(.5), kind('1')

select case when id = 1 then 'one' else 'more' end from t order by id
select case when id = 2 then 'two' else '' end from t order by id

select case id when 1 then 1.5 when 2 then 2 else 0 end from t order by id
select case id when 3 then 3.5 when 4 then 4 else 9 end from t order by id

select coalesce(null, 'x'), nullif('a', 'b'), greatest(1, 2.5), least('b', 'a')
select coalesce(null, 'y'), nullif('a', 'a'), greatest(3, 2.5), least('', 'a')

select array[1, 2, 3], array['a', 'b'], array[1, 2.5]
select array[4, 5, 6], array['', 'NULL'], array[7, .5]

select id from t where (id, name) = (1, 'name 1')
select id from t where (id, name) = (2, 'name 1')

select id from t where (id, s) < (3, 3) order by id
select id from t where (id, s) < (2, 9) order by id

select a[1], a[2:3] from t where id = 1
select a[3], a[1:2] from t where id = 2

select ('{1,2,3}'::int[])[2], (array[4, 5])[1]
select ('{7,8}'::int[])[1], (array[6, 5])[2]

with c as (select id from t where id > 18) select count(*), 5 from c
with c as (select id from t where id > 3) select count(*), 6 from c

with recursive r(n) as (values (1) union all select n + 1 from r where n < 5) select sum(n) from r
with recursive r(n) as (values (3) union all select n + 2 from r where n < 50) select sum(n) from r

with i as (insert into w (a) values (1) returning id) select count(*) + 1 from i
with i as (insert into w (a) values (2) returning id) select count(*) + 3 from i

select 1, 'a' union all select 2, 'b'
select 3, 'c' union all select 4, 'd'

select 'x' union all select name from t where id = 1
select 'y' union all select name from t where id = 2

select 1 union all select 2.5
select 3 union all select .5

select id from t where id < 3 intersect all select 2
select id from t where id < 9 intersect all select 7

select '1'::int, '2020-01-01'::date, '{"a": 1}'::jsonb, '10.0.0.1'::inet
select '-2'::int, 'epoch'::date, '[]'::jsonb, '::1'::inet

select cast('1.25' as numeric), cast('t' as boolean), cast('1 day' as interval)
select cast('NaN' as numeric), cast('off' as boolean), cast('2:00' as interval)

select 5::text, 1.5::int, 7::numeric, 'abc'::char(2), 'abcdef'::varchar(3)
select 6::text, 2.5::int, 8::numeric, 'xyz'::char(2), 'uvw'::varchar(3)

select date '2020-01-01', timestamp '2020-01-01 10:00', interval '1 day', int4 '5', time '10:00'
select date '1999-12-31', timestamp 'infinity', interval '2 h', int4 '-7', time '23:59'

select timestamptz '2020-01-01 10:00', timestamp with time zone '2020-07-01', pg_catalog.int8 '9', bool 'yes'
select timestamptz '2021-01-01', timestamp with time zone 'epoch', pg_catalog.int8 '-9', bool 'no'

select -1, - 2, -1.5, 3 - -4, 5-6, -'7'::int
select -9, - 8, -7.5, 6 - -5, 4-3, -'2'::int

select -2147483648, id from t where id = 1
select -2147483648, id from t where id = 2

select 2147483648, 2147483647, -2147483647
select 2147483648, 1, -2

select -9223372036854775808, 9223372036854775808
select -9223372036854775808, 9223372036854775808

select 9223372036854775807, -9223372036854775807
select 3000000000, -3000000000

select pg_typeof(-2147483648)::text || 'x'
select pg_typeof(-2147483648)::text || 'y'

select id from t where id = -2147483648
select id from t where id = - 2147483648 

select 1e3, 1.e2, .5e-1, 007, 1.50
select 2e3, 3.e2, .25e-1, 000, 2.500

select id from t where f = 0.5
select id from t where f = 1.25

select id from t where r = 1.1
select id from t where r = 2.2

select id from t where n = 1.5
select id from t where n = 3.00

select id from t where b = 3000000000
select id from t where b = 6000000000

select id from t where s = 7
select id from t where s = 70000

select id from t where c = 'c1   '
select id from t where c = 'c2'

select id from t where v = 'v1'
select id from t where v = 'v2 '

select id from t where d = '2020-01-03'
select id from t where d > '2020-01-20' 

select id from t where d between '2020-01-03' and '2020-01-05' order by id
select id from t where d between '2019-01-03' and '2020-01-03' order by id

select id from t where ts < '2020-01-01 03:00+00' order by id
select id from t where ts < '2020-01-01 02:00+00' order by id

select id from t where u = '00000000-0000-0000-0000-000000000003'
select id from t where u = '{00000000000000000000000000000004}'

select id from t where ok = 'yes' and id < 4 order by id
select id from t where ok = 'f' and id < 5 order by id

select id from t where iv = '3 minutes'
select id from t where iv = '00:04'

select id from t where bits = B'011' order by id
select id from t where bits = B'111' order by id

select id from t where m = 'sad' order by id
select id from t where m = 'happy' order by id

select id from t where ip << '10.0.0.0/30' order by id
select id from t where ip << '10.0.0.0/31' order by id

select id from t where x = '\x03' order by id
select id from t where x = '\x05' order by id

select id from t where j @> '{"k": 3}'
select id from t where j @> '{"k": 4, "a": [2]}'

select id from t where a @> '{3}' order by id
select id from t where a && '{4, 5}' order by id

select id from t where id = any ('{1,2}') order by id
select id from t where id = any ('{7}') order by id

select id from t where ts > date '2020-01-01' + 1 order by id limit 2
select id from t where ts > date '2020-01-01' + 0 order by id limit 3

select '1' + 1, '2020-01-02'::date - '2020-01-01', '1' || 2
select '5' + 7, '2021-01-02'::date - '2020-01-01', 'x' || 3

select round(2.5), round(-2.5), abs(-3), upper('x'), length('héé'), substr('abc', 2)
select round(3.5), round(-1.5), abs(-4), upper('ß'), length(''), substr('abcd', 3)

select now() > '2000-01-01', 'now'::timestamptz > '2001-01-01', 'today'::date > 'yesterday'::date
select now() > '2999-01-01', 'now'::timestamptz > '2999-01-01', 'today'::date > 'tomorrow'::date

select ntile(4) over (order by id) from t
select ntile(5) over (order by id) from t

select /* a comment */ 1 -- and another⏎, 2
select /* a comment */ 3 -- and another⏎, 4

SELECT  1 ,⏎	'x'  ;
SELECT  2 ,⏎	'y'  ;

select 1;;
select 2;;

values (1, 'a'), (2, 'b')
values (3, 'c'), (4, 'd')

table t limit 1
table t limit 0

(select 1) union all (select 2)
(select 5) union all (select 6)

select exists (select 1 from t where id = 1), id in (select 5) from t where id = 5
select exists (select 1 from t where id = 0), id in (select 6) from t where id = 5

select (select name from t where id = 1), 'x'
select (select name from t where id = 2), 'y'

select id from t where name = $$name 1$$
select id from t where name = $$name '2'$$

select id from t where name = $q$name 3$q$
select id from t where name = $q$name $$ 4$q$

select E'tab\there', E'\x41\101', E'it\'s', E'\u00e9'
select E'', E'\x42\102', E'\\'

select 'pg_class'::regclass, 't'::regclass::text
select 'pg_type'::regclass, 'w'::regclass::text

select id from t where id = 1 for update
select id from t where id = 2 for update

select null, true, false, 1
select null, true, false, 2

select sum(id) filter (where id > 3), max(name) from t where id < 10
select sum(id) filter (where id > 7), max(name) from t where id < 9

select lateral_b.x from t, lateral (select t.id + 1 as x) lateral_b where t.id = 3
select lateral_b.x from t, lateral (select t.id + 2 as x) lateral_b where t.id = 4

select nextval('w_id_seq') > 0, 1
select nextval('w_id_seq') > 1, 2
