package tiers

// Sizes of policy documents in bytes.
const (
	// DefaultMaxDocument is that of the largest document that is read where nobody says another.
	DefaultMaxDocument = 1 << 20
	// MaxDocument is that of the largest that a reader can be told to take.
	MaxDocument = 16 << 20
)

// Load reads and compiles a policy document with the default configuration: [ParseConfig.Load].
func Load(document []byte, generation uint64) (*Snapshot, error) {
	return ParseConfig{}.Load(document, generation)
}

// Load reads and compiles a policy document, YAML or JSON, in one step. The snapshot has the modes of this moment, and the
// number of the document in its source as its [Snapshot.Generation].
//
// The error is that of [ParseConfig.Parse]: a [*PolicyError] with everything that is wrong, each with its line.
func (c ParseConfig) Load(document []byte, generation uint64) (*Snapshot, error) {
	most, err := documentBound("ParseConfig", c.MaxDocument)
	if err != nil {
		return nil, err
	}
	_, snapshot, err := load(document, most)
	if err != nil {
		return nil, err
	}
	snapshot.family.generation = generation
	return snapshot, nil
}
