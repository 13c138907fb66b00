package redisswitch

import "time"

// Ends returns when the only switch of what was read ends by the clock of this process.
func Ends(text string, redisNow, asked time.Time) (time.Time, error) {
	_, in, err := decode(text, redisNow, asked)
	if err != nil || len(in) != 1 {
		return time.Time{}, err
	}
	return in[0].easing.Until, nil
}
