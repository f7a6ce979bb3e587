# Run by GTKWave: saves the window as picture.png and quits.  gtkwave -S picture.tcl run.gtkw
update
gtkwave::/Time/Zoom/Zoom_Best_Fit
after 500
update
gtkwave::/File/Grab_To_File picture.png
gtkwave::/File/Quit
