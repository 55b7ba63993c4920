"""What chat environments around games share, whatever library a game comes from: sessions, several players, answers, pictures, masks."""
