-- Which steps made the tables. The first one is this file.
CREATE TABLE migration (
	step {integer} PRIMARY KEY,
	-- Times are microseconds since 1970, 0 for none.
	at   {integer} NOT NULL
){strict};

-- One row, which every change locks before it looks at anything else. So changes have one order, in which they are committed.
CREATE TABLE head (
	id        {integer} PRIMARY KEY CHECK (id = 1),
	-- The newest revision of the policy, 0 before the first.
	policy    {integer} NOT NULL DEFAULT 0,
	-- The newest change of a tenant or an override, 0 before the first.
	directory {integer} NOT NULL DEFAULT 0,
	-- How many messages were ever put into the outbox.
	outbox    {integer} NOT NULL DEFAULT 0,
	-- The key with which tokens are made. It never changes.
	token_key {bytes} NOT NULL CHECK (length(token_key) = 32)
){strict};

INSERT INTO head (id, token_key) VALUES (1, {random});

-- What has to be told to others: of each thing at most one message, that it has changed.
CREATE TABLE outbox (
	sequence {integer} NOT NULL UNIQUE,
	kind     {text} NOT NULL,
	name     {bytes} NOT NULL,
	revision {integer} NOT NULL,
	at       {integer} NOT NULL,
	PRIMARY KEY (kind, name)
){strict};

-- What one daemon does at a time, and who that is. Who holds a lease counts its beat on, and whoever sees it stand still takes it.
CREATE TABLE lease (
	name   {text} PRIMARY KEY,
	holder {text} NOT NULL,
	beat   {integer} NOT NULL
){strict};

-- What was answered to a request, by a hash of who asked and of the key, for some time.
CREATE TABLE answer (
	id      {bytes} PRIMARY KEY,
	-- A hash of what was asked.
	request {bytes} NOT NULL,
	body    {bytes} NOT NULL,
	expires {integer} NOT NULL
){strict};
CREATE INDEX answer_expires ON answer (expires);
-- Every revision of the policy, byte for byte as it was published.
CREATE TABLE policy_revision (
	number    {integer} PRIMARY KEY CHECK (number BETWEEN 1 AND 9007199254740991),
	hash      {bytes} NOT NULL CHECK (length(hash) = 32),
	document  {bytes} NOT NULL,
	author    {text} NOT NULL,
	reason    {text} NOT NULL,
	-- Milliseconds since 1970, as they are signed.
	published {integer} NOT NULL,
	signature {bytes} NOT NULL
){strict};
-- What is known of single tenants beside the policy.
CREATE TABLE tenant (
	name          {bytes} PRIMARY KEY,
	revision      {integer} NOT NULL UNIQUE,
	-- What an operator has written, and what the organisation gives its teams and users. NULL is nothing, and both are NULL
	-- where the record was removed.
	document      {bytes},
	allocations   {bytes},
	-- What instances are given of both.
	record        {bytes},
	-- 1 where allocations may come to more than the tenant has.
	oversubscribe {integer} NOT NULL,
	author        {text} NOT NULL,
	reason        {text} NOT NULL,
	at            {integer} NOT NULL
){strict};

-- What is to hold for an owner for a time, whatever the policy says. Redis has what comes of it.
CREATE TABLE override_intent (
	tenant     {bytes} NOT NULL,
	level      {text} NOT NULL,
	name       {bytes} NOT NULL,
	part       {bytes} NOT NULL,
	limit_name {text} NOT NULL,
	revision   {integer} NOT NULL UNIQUE,
	-- NULL where it was removed.
	document   {bytes},
	expires    {integer} NOT NULL,
	author     {text} NOT NULL,
	reason     {text} NOT NULL,
	at         {integer} NOT NULL,
	-- The revision that Redis was given last, 0 before the first.
	applied    {integer} NOT NULL DEFAULT 0,
	PRIMARY KEY (tenant, level, name, part, limit_name)
){strict};

-- Override records in Redis that nobody has set here. Their texts are any bytes.
CREATE TABLE override_unmanaged (
	tenant     {bytes} NOT NULL,
	level      {text} NOT NULL,
	name       {bytes} NOT NULL,
	part       {bytes} NOT NULL,
	limit_name {bytes} NOT NULL,
	document   {bytes} NOT NULL,
	expires    {integer} NOT NULL,
	author     {bytes} NOT NULL,
	reason     {bytes} NOT NULL,
	-- When it was set, by the clock of Redis.
	at         {integer} NOT NULL,
	PRIMARY KEY (tenant, level, name, part, limit_name)
){strict};
-- Who may come in with a token. What a token is, nobody can read here.
CREATE TABLE token (
	id      {text} PRIMARY KEY,
	hash    {bytes} NOT NULL,
	subject {text} NOT NULL,
	-- Who has issued it, and with which token. Empty is nobody, and none.
	owner   {text} NOT NULL,
	parent  {text} NOT NULL,
	-- The token whose budgets it has: itself, or the one that it comes from.
	root    {text} NOT NULL,
	-- 1 for one that answers for itself, and not its owner.
	apart   {integer} NOT NULL,
	-- JSON.
	roles   {text} NOT NULL,
	tenants {text} NOT NULL,
	-- 1 for one that is exchanged for another.
	bootstrap {integer} NOT NULL,
	issued  {integer} NOT NULL,
	expires {integer} NOT NULL,
	-- To some minutes.
	used    {integer} NOT NULL,
	-- 0 while it holds.
	revoked {integer} NOT NULL
){strict};
CREATE INDEX token_parent ON token (parent, id);
CREATE INDEX token_ended ON token ((CASE WHEN revoked BETWEEN 1 AND expires THEN revoked ELSE expires END));
CREATE INDEX token_owner ON token (owner, expires) WHERE revoked = 0;
-- The log: exact bytes, and the hash of each row and the row before it.
CREATE TABLE audit_entry (
	sequence {integer} PRIMARY KEY,
	record   {bytes} NOT NULL,
	hash     {bytes} NOT NULL CHECK (length(hash) = 32),
	-- What stands in the record, to find it.
	subject  {text} NOT NULL,
	action   {text} NOT NULL,
	target   {text} NOT NULL,
	tenant   {text} NOT NULL
){strict};
CREATE INDEX audit_subject ON audit_entry (subject, sequence);
CREATE INDEX audit_action ON audit_entry (action, sequence);
CREATE INDEX audit_target ON audit_entry (target, sequence);
CREATE INDEX audit_tenant ON audit_entry (tenant, sequence);
-- Which mode switches of the Redis the audit log has, until they are gone there.
CREATE TABLE mode_noted (
	fingerprint {text} NOT NULL PRIMARY KEY,
	at          {integer} NOT NULL
){strict};
-- What tenants have used, as the store of budgets has counted it. Minutes and hours are counted since 1970, in UTC; names are any bytes. Numbers are absolute
-- and only grow: what is read again replaces them only if it is more. Days and months are sums of hours.
CREATE TABLE usage_minute (
	tenant     {bytes} NOT NULL,
	at         {integer} NOT NULL,
	-- How much it is to be believed: exact or local.
	grade      {text} NOT NULL,
	unit       {bytes} NOT NULL,
	-- The coordinate of a root field, empty for a unit as a whole.
	field      {bytes} NOT NULL,
	-- What tells a count from one that was lost or forgotten before it. Those of all generations are added up.
	generation {integer} NOT NULL,
	charged    {integer} NOT NULL,
	given_back {integer} NOT NULL,
	calls      {integer} NOT NULL,
	PRIMARY KEY (tenant, at, grade, unit, field, generation)
){clustered};
CREATE TABLE usage_hour (
	tenant     {bytes} NOT NULL,
	at         {integer} NOT NULL,
	grade      {text} NOT NULL,
	unit       {bytes} NOT NULL,
	field      {bytes} NOT NULL,
	generation {integer} NOT NULL,
	charged    {integer} NOT NULL,
	given_back {integer} NOT NULL,
	calls      {integer} NOT NULL,
	PRIMARY KEY (tenant, at, grade, unit, field, generation)
){clustered};
-- What is read over all tenants. It has the numbers, so that a sum reads no row of the table.
CREATE INDEX usage_hour_at ON usage_hour (at, tenant, grade, unit, charged, given_back) WHERE length(field) = 0;

-- How many operations all instances together have refused.
CREATE TABLE refused_hour (
	tenant  {bytes} NOT NULL,
	at      {integer} NOT NULL,
	-- The limit, or what refused in the place of one.
	name    {bytes} NOT NULL,
	refused {integer} NOT NULL,
	PRIMARY KEY (tenant, at, name)
){clustered};
CREATE INDEX refused_hour_at ON refused_hour (at, tenant, name, refused);

-- The first minute and the first hour of which there are counts. What is older was forgotten.
CREATE TABLE usage_state (
	id           {integer} PRIMARY KEY CHECK (id = 1),
	minutes_from {integer} NOT NULL DEFAULT 0,
	hours_from   {integer} NOT NULL DEFAULT 0
){strict};
INSERT INTO usage_state (id) VALUES (1);

-- Of which time counts were collected: from the first minute on, and up to another one.
CREATE TABLE usage_pass (
	id        {integer} PRIMARY KEY CHECK (id = 1),
	began     {integer} NOT NULL,
	collected {integer} NOT NULL
){strict};

-- Times that nobody has collected, because the collector was away for longer than counts are kept elsewhere: in minutes since 1970. What was counted in them may be
-- lost, so that no line is ever removed.
CREATE TABLE usage_gap (
	first_minute {integer} PRIMARY KEY,
	until_minute {integer} NOT NULL CHECK (until_minute > first_minute)
){strict};
-- How much of the audit log has arrived where changes are announced: entries with a smaller sequence have.
CREATE TABLE announced (
	name {text} PRIMARY KEY,
	next {integer} NOT NULL
){strict};
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
-- What is open is found without what is over: there is little of it beside all that there ever was.
CREATE INDEX override_holds ON override_intent (tenant, (CASE expires WHEN 0 THEN 9223372036854775807 ELSE expires END)) WHERE document IS NOT NULL;
CREATE INDEX override_waits ON override_intent (tenant, revision) WHERE applied < revision;
