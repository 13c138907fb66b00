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
	-- When it was set, by the clock of Redis, and when it was found.
	at         {integer} NOT NULL,
	found      {integer} NOT NULL,
	PRIMARY KEY (tenant, level, name, part, limit_name)
){strict};
