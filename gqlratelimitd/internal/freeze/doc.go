// Package freeze makes the statements of billing periods by itself, once each period is over: it says which period is next and when it is due, and one daemon
// at a time has the control plane freeze it.
//
// How far it has come stands in the database, so that a period that nobody has frozen is frozen late, and in its order, and none twice.
package freeze
