package subscription

// ListenEvery is Listen with a silence of the test's own.
var ListenEvery = listen
