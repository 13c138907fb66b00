package redisswitch

import "time"

// Ends returns when a switch that was read ends by the clock of this process.
func Ends(field, text string, redisNow int64, asked time.Time) (time.Time, error) {
	one, err := decode(field, text, redisNow, asked)
	return one.easing.Until, err
}
