-- What fairlease.attach_queue('skew') comes to at a level that has no such function yet.
select pgmq.create('skew');

insert into fairlease.queues (queue, table_name, archive_name, has_headers, has_last_read_at)
values (
  'skew', 'q_skew', 'a_skew',
  fairlease.column_exists('q_skew', 'headers'), fairlease.column_exists('q_skew', 'last_read_at')
);
insert into fairlease.cursors (queue) values ('skew');

select fairlease.make_oldest(q), fairlease.make_visible(q), fairlease.make_read(q),
  fairlease.make_probe(q)
from fairlease.queues q;

create index on pgmq.q_skew ((fairlease.org_of(message, headers) collate "C"), vt, msg_id);
