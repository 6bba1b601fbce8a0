package openid

// Fill takes all places of requests to the provider.
func Fill(p *Provider) (leave func()) {
	for range cap(p.places) {
		p.places <- struct{}{}
	}
	return func() {
		for range cap(p.places) {
			<-p.places
		}
	}
}

// FillEnding takes all places of logouts of the provider.
func FillEnding(p *Provider) (leave func()) {
	for range cap(p.ending) {
		p.ending <- struct{}{}
	}
	return func() {
		for range cap(p.ending) {
			<-p.ending
		}
	}
}

// InUse is the number of taken places.
func InUse(p *Provider) int { return len(p.places) + len(p.ending) }
