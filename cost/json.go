package cost

import "encoding/json"

// MarshalJSON writes the cost as an object with type, field, base and points, and with free and
// approximate where they are true. An infinite number is written as the largest finite one.
func (c Cost) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Type        float64 `json:"type"`
		Field       float64 `json:"field"`
		Base        float64 `json:"base"`
		Points      int64   `json:"points"`
		Free        bool    `json:"free,omitempty"`
		Approximate bool    `json:"approximate,omitempty"`
	}{finite(c.Type), finite(c.Field), finite(c.Base), c.Points(), c.Free, c.Approximate})
}
