// Package show says what clients are told of a decision: the extension of the response, the headers, the errors and their
// texts, the field rateLimit, and the breakdown of a price. What is hidden from a client is left out here and nowhere else.
package show
