// Package lease is the side of an exchange that holds something: what an instance leases of the limits of an owner, what it decides by that, and
// what it asks the store for. The other side is [state.Exchange]. It reads no clock and does no I/O: times are arguments, in microseconds of a
// clock that never steps, and whoever owns a [Holder] sends its messages.
//
// What is admitted here and by the store together is never more than the limit, in any interval of time, whatever is lost, repeated or late,
// as long as the clocks of holders run no more than a thousandth slower than that of the store:
//
//   - What a holder gives back it no longer has when it sends the message, and what it is given counts as held before it knows.
//   - Its lease ends, by its own clock, before the store may take it back: it is counted from when the message was sent.
//   - An operation is admitted if the clock, read after the debit, is before that end. So no pause, however long, admits anything later.
//   - What a lease had when it ended is lost: the store takes back the capacity and the rate, and no level.
package lease
