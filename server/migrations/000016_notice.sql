-- oldest program: 15
--
-- Notices tell members about something that needs their attention, such as a webhook that fails.

-- When a rotation replaced the key. Null for keys that were replaced before this column existed.
alter table api_key add column replaced_at timestamptz;
create index api_key__expires_at on api_key (expires_at) where revoked_at is null and grace_until is null;
create index api_key__grace_until on api_key (grace_until) where revoked_at is null and grace_until is not null;

create table notice (
  company_id   uuid not null references company (id),
  -- Ascends with the time of creation.
  id           uuid not null,
  kind         text collate "C" not null,
  -- Null if it isn't about a single workspace. Then members with access to the whole company see it,
  workspace_id uuid,
  -- and this member, who caused it.
  user_id      uuid,
  message      text not null check (length(message) between 1 and 1000),
  -- The path of the page where members can do something about it.
  link         text not null,
  created_at   timestamptz not null,
  -- When it was decided who gets it by mail. Null before that, and if no mail server is configured.
  mails_planned_at timestamptz,
  primary key (company_id, id)
);
create index notice__created_at on notice (created_at);
create index notice__unplanned on notice (created_at) where mails_planned_at is null;

-- Remembers the causes of notices, so that each has one notice, whichever node finds it and however often.
-- It outlives its notice if a company has too many of them.
create table notice_cause (
  company_id uuid not null references company (id),
  cause      text collate "C" not null,
  kind       text collate "C" not null,
  notice_id  uuid not null,
  -- From then on, the same cause gets a new notice. Null while the cause lasts.
  forget_at  timestamptz,
  primary key (company_id, cause)
);
create index notice_cause__forget_at on notice_cause (forget_at) where forget_at is not null;
create index notice_cause__lasting on notice_cause (kind) where forget_at is null;

create table notice_read (
  company_id uuid not null,
  notice_id  uuid not null,
  user_id    uuid not null references app_user (id) on delete cascade,
  read_at    timestamptz not null,
  primary key (company_id, notice_id, user_id),
  foreign key (company_id, notice_id) references notice (company_id, id) on delete cascade
);
create index notice_read__user_id on notice_read (user_id);

-- The mail of a notice to a member. A mail that is SENDING is never sent again, because a node that crashed
-- may have sent it.
create table notice_mail (
  company_id uuid not null,
  notice_id  uuid not null,
  user_id    uuid not null references app_user (id) on delete cascade,
  status     text not null check (status in ('PENDING', 'SENDING', 'SENT', 'FAILED')),
  attempt    integer not null default 0,
  due_at     timestamptz not null,
  created_at timestamptz not null,
  primary key (company_id, notice_id, user_id),
  foreign key (company_id, notice_id) references notice (company_id, id) on delete cascade
);
create index notice_mail__due on notice_mail (due_at) where status = 'PENDING';
create index notice_mail__company on notice_mail (company_id, created_at);
create index notice_mail__user_id on notice_mail (user_id);

-- The kinds of notices that a member doesn't want by mail.
create table notice_mail_off (
  user_id uuid not null references app_user (id) on delete cascade,
  kind    text collate "C" not null,
  primary key (user_id, kind)
);

grant select, insert, update, delete on notice_mail, notice_mail_off to annals_serving;
grant select, insert, update, delete on notice, notice_cause, notice_read to annals_serving;
