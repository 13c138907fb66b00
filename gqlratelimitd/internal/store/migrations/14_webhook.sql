-- Endpoints that tenants have registered for events about themselves.
CREATE TABLE webhook (
	id          {text} PRIMARY KEY,
	tenant      {bytes} NOT NULL,
	-- The tenant as events call it.
	subject     {text} NOT NULL,
	description {text} NOT NULL,
	-- JSON: the types of the events that it wants.
	types       {text} NOT NULL,
	-- Where it is, and what signs: nobody can read it here.
	sealed      {bytes} NOT NULL,
	-- Why it gets nothing: off or gone. Empty while it gets events.
	disabled    {text} NOT NULL,
	-- When it was registered.
	created     {integer} NOT NULL,
	revision    {integer} NOT NULL,
	author      {text} NOT NULL,
	reason      {text} NOT NULL,
	at          {integer} NOT NULL
){strict};
CREATE INDEX webhook_tenant ON webhook (tenant, id);
CREATE INDEX webhook_subject ON webhook (subject);

-- What is on its way to an endpoint, or is tried no more.
CREATE TABLE webhook_delivery (
	webhook  {text} NOT NULL,
	id       {text} NOT NULL,
	body     {bytes} NOT NULL,
	-- 1 for what is tried no more.
	dead     {integer} NOT NULL,
	attempts {integer} NOT NULL,
	-- When it is tried next, or when the lease of who tries it ends; of what is dead, since when it is.
	due      {integer} NOT NULL,
	-- Of who tries it, 0 if nobody does.
	lease    {integer} NOT NULL,
	-- What the last attempt came to.
	outcome  {text} NOT NULL,
	reason   {text} NOT NULL,
	status   {integer} NOT NULL,
	-- When it was put here.
	began    {integer} NOT NULL,
	PRIMARY KEY (webhook, id)
){strict};
CREATE INDEX webhook_delivery_due ON webhook_delivery (dead, due);
CREATE INDEX webhook_delivery_leased ON webhook_delivery (webhook) WHERE lease <> 0;
CREATE INDEX webhook_delivery_of ON webhook_delivery (webhook, dead, due);

-- How far the streams of events were read.
CREATE TABLE webhook_cursor (
	stream   {text} PRIMARY KEY,
	position {text} NOT NULL
){strict};
