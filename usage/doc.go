// Package usage brings what was counted from instances to whoever keeps it: points and requests that were charged, and how many operations
// were admitted and refused.
//
// Points, requests, other units and root fields are counted by the store, in the step that charges them (bucket.Usage), where the tier asks for
// it. What stands there is exact. A collector reads it, and has to know of which tenants and hours: instances tell that ([Counted]), and what
// nobody told is found by looking through the store ([Source.Found]).
//
// Refusals charge nothing, so that each instance counts its own decisions ([Decisions]) and crossings of thresholds ([Reached]), in absolute
// numbers that only grow, for each minute and each of its runs. Whoever keeps them takes the larger one of two numbers of a row, and adds up rows:
// then nothing is counted twice, in whatever order and however often it reads. A process that is killed loses what it has counted since it was
// last collected, a second or so.
//
// Everything that is told is told in a minute, by one clock ([Source.Now]). A collector reads each minute once, [Grace] after it is over. What came
// too late for its minute is told in a later one.
package usage
