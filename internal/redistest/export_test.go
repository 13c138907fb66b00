package redistest

// CheckVersion says whether a server is new enough.
var CheckVersion = checkVersion
