# Run by GTKWave: saves the window as picture.png and quits.  gtkwave -S picture.tcl run.gtkw
update
after 500
update
gtkwave::/File/Grab_To_File picture.png
gtkwave::/File/Quit
