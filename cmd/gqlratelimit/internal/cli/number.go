package cli

import (
	"math"
	"strconv"
	"strings"
)

// ParseShare reads the value of a flag such as 10% or 0.1. A number above 1 without % is refused, because
// who writes 50 means 50%.
func ParseShare(flag, text string) (float64, error) {
	digits, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	share, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if err != nil || !(share >= 0) || math.IsInf(share, 0) {
		return 0, Usagef("-%s %q is no share: say 10%% or 0.1", flag, text)
	}
	if percent {
		return share / 100, nil
	}
	if share > 1 {
		return 0, Usagef("-%s %s means %s: say %s%% or %s", flag, text, Percent(share), text, Percent(share))
	}
	return share, nil
}

// Percent writes a share, such as 0.1 for 10%, to a tenth of a per cent. One that is smaller has its first
// digit, since it is not nothing.
func Percent(share float64) string {
	switch {
	case math.IsInf(share, 0):
		return "∞"
	case share != 0 && math.Abs(share) < 0.0005:
		short, err := strconv.ParseFloat(strconv.FormatFloat(share*100, 'e', 0, 64), 64)
		if err != nil {
			short = share * 100
		}
		return strconv.FormatFloat(short, 'f', -1, 64) + "%"
	}
	return strconv.FormatFloat(math.Round(share*1000)/10, 'f', -1, 64) + "%"
}

// Count says how many there are, in a word that takes an s.
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}
