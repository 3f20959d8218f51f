-- Replaying and purging dead letters.
select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('fairlease.migrations', 0));

-- The letter as a new message of the same org, with a link to where it came from.
create or replace function fairlease.replay_letter(
  p_queue fairlease.queues, p_letter fairlease.dead_letters
)
returns fairlease.new_message
language plpgsql volatile
set search_path = '', pg_temp
as $$
declare
  v_new fairlease.new_message;
  v_sent fairlease.new_message[];
begin
  v_new.place := 0;
  v_new.message := p_letter.message;
  v_new.headers := case
    when jsonb_typeof(p_letter.headers) = 'object' then p_letter.headers else '{}'
  end || jsonb_build_object(
    'x-org', p_letter.org,
    'x-replay-of', jsonb_build_object('dead_letter', p_letter.id, 'msg_id', p_letter.msg_id)
  );
  if not p_queue.has_headers and jsonb_typeof(v_new.message) = 'object' then
    v_new.message := v_new.message || jsonb_build_object('org', p_letter.org);
  end if;
  v_new.key := v_new.message ->> 'key';
  v_sent := fairlease.send_all(p_queue, array[v_new], fairlease.now_());
  return v_sent[1];
end;
$$;

-- Send letters again, each deleted in the same transaction. Returns, in the order of the ids,
-- [{"id", "result": "replayed" | "refused" | "gone", "msg_id"?, "note"?}]; `gone` also where
-- somebody else replays the letter now. A letter whose key is live is refused.
create or replace function fairlease.replay_dead_letters(ids bigint[])
returns jsonb
language plpgsql volatile
set search_path = '', pg_temp
as $$
declare
  v_id bigint;
  v_letter fairlease.dead_letters;
  v_sent fairlease.new_message;
  v_results jsonb := '[]';
  v_result jsonb;
begin
  foreach v_id in array ids loop
    select * into v_letter from fairlease.dead_letters d where d.id = v_id for update skip locked;
    if not found then
      v_result := jsonb_build_object('id', v_id, 'result', 'gone');
    else
      v_sent := fairlease.replay_letter(fairlease.attached(v_letter.queue), v_letter);
      v_result := jsonb_build_object('id', v_id, 'msg_id', v_sent.msg_id) || case
        when v_sent.existing then jsonb_build_object('result', 'refused', 'note',
          format('key %s is live: settle or cancel message %s first', v_sent.key, v_sent.msg_id))
        else jsonb_build_object('result', 'replayed')
      end;
    end if;
    if v_result ->> 'result' = 'replayed' then
      delete from fairlease.dead_letters d where d.id = v_id;
    end if;
    v_results := v_results || jsonb_build_array(v_result);
  end loop;
  return v_results;
end;
$$;

revoke all on function
  fairlease.replay_letter(fairlease.queues, fairlease.dead_letters),
  fairlease.replay_dead_letters(bigint[])
from public;

notify pgrst, 'reload schema';
