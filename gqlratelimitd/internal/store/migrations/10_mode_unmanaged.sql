-- Mode switches in Redis that nobody has set here. Their texts are any bytes, and one may be about an operation of a tenant.
CREATE TABLE mode_unmanaged (
	tenant    {bytes} NOT NULL,
	operation {bytes} NOT NULL,
	mode      {text} NOT NULL,
	until     {integer} NOT NULL,
	author    {bytes} NOT NULL,
	reason    {bytes} NOT NULL,
	-- When it was set, by the clock of who has, and when it was found.
	at        {integer} NOT NULL,
	found     {integer} NOT NULL,
	PRIMARY KEY (tenant, operation)
){strict};
