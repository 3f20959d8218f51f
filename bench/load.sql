-- One session's share of a load, run inside the server: what is compared is the allocators, not a
-- client. Every call is its own transaction, as over PostgREST. Of four claims three are pinned; of
-- four messages three are done and one is put off; every 8th claim renews, every 32nd releases.
create schema if not exists load;

create or replace procedure load.ours(
  p_queue text, p_session int, p_per_org int, p_until timestamptz, inout p_claims bigint,
  inout p_messages bigint
)
language plpgsql
as $$
declare
  v_holder text := 'load/' || p_session || '/1';
  v_lease int := 1;
  v_org text;
  v_outcomes jsonb := '[]';
  v_answer jsonb;
  v_message jsonb;
begin
  while clock_timestamp() < p_until loop
    p_claims := p_claims + 1;
    v_answer := pgmq_public.settle_and_claim(
      p_queue, v_holder, v_outcomes, 1, 120, 60, p_per_org, 1024,
      case when p_claims % 4 <> 1 then v_org end
    );
    commit;
    v_org := v_answer ->> 'org';
    v_message := v_answer -> 'messages' -> 0;
    v_outcomes := '[]';
    if v_message is not null then
      p_messages := p_messages + 1;
      v_outcomes := jsonb_build_array(jsonb_build_object(
        'id', v_message -> 'msg_id', 'ct', v_message -> 'read_ct',
        'do', case when p_claims % 4 = 0 then 'retry' else 'done' end, 'after_ms', 120000
      ));
    end if;
    if p_claims % 8 = 0 then
      perform pgmq_public.renew_org_slot(p_queue, v_holder, 60);
      commit;
    end if;
    if p_claims % 32 = 0 then
      perform pgmq_public.release_org_slot(p_queue, v_holder);
      commit;
      v_lease := v_lease + 1;
      v_holder := 'load/' || p_session || '/' || v_lease;
      v_org := null;
    end if;
  end loop;
end;
$$;

create or replace procedure load.separately(
  p_queue text, p_session int, p_per_org int, p_until timestamptz, inout p_claims bigint,
  inout p_messages bigint
)
language plpgsql
as $$
declare
  v_holder text := 'load/' || p_session || '/1';
  v_lease int := 1;
  v_row record;
begin
  v_row := row(null::text, null::bigint, null::int);
  select null::text as org, null::bigint as msg_id, null::int as read_ct into v_row;
  while clock_timestamp() < p_until loop
    p_claims := p_claims + 1;
    select c.org, c.msg_id, c.read_ct into v_row
    from pgmq_public.claim_org_slot_and_read(
      p_queue, 120, 1, v_holder, 60, p_per_org, 1024, case when p_claims % 4 <> 1 then v_row.org end
    ) c;
    commit;
    if v_row.msg_id is not null then
      p_messages := p_messages + 1;
      perform pgmq_public.settle_and_claim(
        p_queue, v_holder, jsonb_build_array(jsonb_build_object(
          'id', v_row.msg_id, 'ct', v_row.read_ct,
          'do', case when p_claims % 4 = 0 then 'retry' else 'done' end, 'after_ms', 120000
        )), 0, 120, 60, p_per_org, 1024
      );
      commit;
    end if;
    if p_claims % 8 = 0 then
      perform pgmq_public.renew_org_slot(p_queue, v_holder, 60);
      commit;
    end if;
    if p_claims % 32 = 0 then
      perform pgmq_public.release_org_slot(p_queue, v_holder);
      commit;
      v_lease := v_lease + 1;
      v_holder := 'load/' || p_session || '/' || v_lease;
      v_row.org := null;
    end if;
  end loop;
end;
$$;

create or replace procedure load.baseline(
  p_queue text, p_session int, p_per_org int, p_until timestamptz, inout p_claims bigint,
  inout p_messages bigint
)
language plpgsql
as $$
declare
  v_holder text := 'load/' || p_session;
  v_org text;
  v_ids bigint[];
begin
  while clock_timestamp() < p_until loop
    p_claims := p_claims + 1;
    select c.org, c.ids into v_org, v_ids
    from baseline.claim(
      p_queue, 120, 1, v_holder, 60, p_per_org, 1024, case when p_claims % 4 <> 1 then v_org end
    ) c;
    commit;
    if v_ids is not null then
      p_messages := p_messages + 1;
      if p_claims % 4 = 0 then
        perform pgmq.set_vt(p_queue, v_ids[1], 120);
      else
        perform pgmq.archive(p_queue, v_ids[1]);
      end if;
      commit;
    end if;
    if p_claims % 8 = 0 then
      update baseline.slots set expires_at = clock_timestamp() + interval '60 s'
      where holder = v_holder;
      commit;
    end if;
    if p_claims % 32 = 0 then
      delete from baseline.slots where holder = v_holder;
      commit;
      v_org := null;
    end if;
  end loop;
end;
$$;

-- No orgs, no slots, no fences: the queue alone.
create or replace procedure load.pgmq(
  p_queue text, p_session int, p_per_org int, p_until timestamptz, inout p_claims bigint,
  inout p_messages bigint
)
language plpgsql
as $$
declare
  v_id bigint;
begin
  while clock_timestamp() < p_until loop
    p_claims := p_claims + 1;
    select r.msg_id into v_id from pgmq.read(p_queue, 120, 1) r;
    commit;
    if v_id is not null then
      p_messages := p_messages + 1;
      if p_claims % 4 = 0 then
        perform pgmq.set_vt(p_queue, v_id, 120);
      else
        perform pgmq.archive(p_queue, v_id);
      end if;
      commit;
    end if;
  end loop;
end;
$$;
