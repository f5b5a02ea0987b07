select id, name from t where id < 12 order by 1
select id, name from t where id < 12 order by 2
select id, name from t where id < 12 order by 1 desc

select id, name from t where id > 7 order by 2, 1 limit 4
select id, name from t where id > 8 order by 1, 2 limit 4

select 2 as a union select 1 order by 1
select 'x' as a union select 'y' order by 1

select ok, count(*) from t where id > 3 group by 1 order by 1
select ok, count(*) from t where id > 5 group by 1 order by 2

select id % 3, count(*) from t group by id % 3 order by id % 3
select id % 4, count(*) from t group by id % 4 order by id % 4

select id % 3 + 1, count(*) from t group by id % 3 order by id % 3
select id % 3 + 2, count(*) from t group by id % 3 order by id % 3

select ok, m, count(*) from t group by grouping sets ((1), (2), ()) order by 1, 2
select ok, m, count(*) from t group by grouping sets ((1, 2), (2), ()) order by 2, 1

select ok, sum(id) from t group by ok having sum(id) > 100 order by ok
select ok, sum(id) from t group by ok having sum(id) > 105 order by ok

select distinct on (1) ok, id from t order by 1, 2
select distinct on (2) ok, id from t order by 2, 1

select distinct 'x', ok from t order by ok
select distinct 'y', ok from t order by ok

select distinct id % 2 from t order by id % 2
select distinct id % 3 from t order by id % 3

select string_agg(name, ', ' order by id) from t where id < 3
select string_agg(name, '; ' order by id desc) from t where id < 4

select string_agg(distinct v, '-' ) from t where id < 3
select string_agg(distinct v, '+' ) from t where id < 3

select count(distinct id % 3) from t
select count(distinct id % 5) from t

select percentile_cont(0.5) within group (order by id) from t
select percentile_cont(0.25) within group (order by id) from t

select '1.555'::numeric(5, 2), 'abc'::varchar(2)
select '1.555'::numeric(5, 1), 'abc'::varchar(1)

select 1.5::float(20), n::numeric(10, 1) from t where id = 3
select 1.5::float(50), n::numeric(10, 0) from t where id = 3

select numeric(5, 2) '1.555'
select numeric(5, 1) '1.555'

select interval '999' minute, interval '1 day 2:03:04' day to minute
select interval '1' minute, interval '2 days 2:03:04' day to minute

select '1.5555'::interval(0), '1.5555'::interval second(2)
select '2.5555'::interval(0), '7.5555'::interval second(2)

select interval '1' year, interval '5'
select interval '2' year, interval '6'

insert into upsert values (1, 5, 'x') on conflict (a) where b > 0 do update set c = 'twice'
insert into upsert values (2, 6, 'y') on conflict (a) where b > 0 do update set c = 'again'

insert into upsert values (11, 15, 'x') on conflict ((b + 1)) do nothing
insert into upsert values (12, 16, 'y') on conflict ((b + 1)) do nothing

select count(*) from t a full join t b on 1 = 1 where a.id = 3
select count(*) from t a full join t b on 1 = 1 where a.id < 4

select concat('x', 1, 'y'), concat_ws('-', 'a', 2)
select concat('z', 2, ''), concat_ws('+', 'b', 3)

select format('%s is %s', 'a', 1)
select format('%s was %L', 'b', 2)

select json_build_object('k', 1, 'l', 'x')::text, jsonb_build_array('a', 2)::text
select json_build_object('m', 3, 'n', 'y')::text, jsonb_build_array('b', 4)::text

select num_nulls('a', null), num_nonnulls('b', 1), count('x') from t
select num_nulls('c', null), num_nonnulls('d', 2), count('') from t

select pg_typeof('x'), pg_typeof(1), pg_column_size('abc')
select pg_typeof('y'), pg_typeof(1.5), pg_column_size('abcd')

select row('x', 1), ('y', 2)
select row('', 3), ('z', 4)

select 'x' is null, 'y' is not null, 5 is null
select '' is null, 'z' is not null, 6 is null

select json_object_agg('k', id)::text from t where id = 3
select json_object_agg('l', id)::text from t where id = 4

select xmlelement(name a, 'x')::text, xmlforest('y' as b)::text
select xmlelement(name a, 'z')::text, xmlforest('' as b)::text

select cidr('192.168.1.0/30'), box('(0,0),(1,1)')
select cidr('192.168.1.2/30'), box('(0,0),(1,1)')
select cidr('10.0.0.0/8'), box('(0,0),(2,2)')

select text('x'), int4(5), name('y')
select text('z'), int4(6), name('')

select tsquery('a & b'), point('(1,2)')
select tsquery('c | d'), point('(3,4)')

select 'abcdef'::short, 5::positive
select 'xyzuvw'::short, 6::positive
select 'q'::short, (-1)::positive

select 'sad'::mood, mood 'ok'
select 'happy'::mood, mood 'sad'
select 'none'::mood, mood 'sad'

select '{sad,ok}'::mood[], cast('happy' as mood)
select '{}'::mood[], cast('ok' as mood)

select extract(year from d), extract('month' from d) from t where id = 1
select extract(day from d), extract('month' from d) from t where id = 2

select normalize('é', nfc), normalize('x')
select normalize('e', nfc), normalize('y')

select count(*) from t tablesample bernoulli (100) repeatable (1)
select count(*) from t tablesample bernoulli (50) repeatable (2)

select sum(id) over (order by id rows 1 preceding) from t
select sum(id) over (order by id rows 2 preceding) from t

select sum(id) over w from t window w as (partition by id % 2 order by id) order by id
select sum(id) over w from t window w as (partition by id % 3 order by id) order by id

select name < 'name 2' collate "C" from t where id = 1
select name < 'name 0' collate "C" from t where id = 1

select ('a' || name) collate "C" from t where id = 1
select ('b' || name) collate "C" from t where id = 1

select j -> 'k', j ->> 'a', j #>> '{a,0}', j -> 'a' -> 1 from t where id = 3
select j -> 'a', j ->> 'k', j #>> '{a,1}', j -> 'a' -> 0 from t where id = 3

select id from t where j ->> 'k' = '3'
select id from t where j ->> 'k' = '4'

select date_trunc('month', d), date_part('day', d) from t where id = 3
select date_trunc('year', d), date_part('dow', d) from t where id = 3

select to_char(d, 'YYYY-MM'), to_char(id, '999') from t where id = 3
select to_char(d, 'DD'), to_char(id, '000') from t where id = 3

select ts at time zone 'UTC' from t where id = 1
select ts at time zone 'Europe/Paris' from t where id = 1

select id from t where id + 1 = 5
select id from t where id + 2 = 5

select N'abc', 'x'
select N'd', 'y'

select char 'abc', bit '1', 1
select char 'd', bit '0', 2

select - -5, +5, -(6)
select - -7, +8, -(9)

select pg_typeof(- 2147483648)::text, -(2147483648)
select pg_typeof(- 2147483648)::text, -(2147483648) 

with recursive g(a) as (select 1 union all select 1 from g) cycle a set c to 'y' default 'n' using p select count(*) from g
with recursive g(a) as (select 2 union all select 2 from g) cycle a set c to 'a' default 'b' using p select count(*) from g

select id from t order by id <> 3, id limit 3
select id from t order by id <> 5, id limit 3

select id from t order by case when id = 7 then 0 else 1 end, id limit 2
select id from t order by case when id = 9 then 0 else 1 end, id limit 2
